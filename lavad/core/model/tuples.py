"""Named tuples without their own constructors, which take three times as long: for those that are made at each start.

Every field has to be given, in order, those with a default as well.
"""

new = tuple.__new__
