"""Fast construction of named tuples, for those made at each start: their own constructors take three times as long.

All fields have to be given, in order, also those with a default.
"""

new = tuple.__new__
