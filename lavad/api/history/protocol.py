"""Protocol between the master and its reader process, in the frames of the writer's: marshalled tuples.

To the reader: first the database's URL, then tuples that begin with one of the first three words. From the reader: the
others. A number names a query. The reader sends no more pages of it than the master has asked for, so that a slow
client costs no memory.
"""

ASK = "ask"  # number, question: PAGES_AHEAD pages of the answer
MORE = "more"  # number: one page more
DROP = "drop"  # number: the answer is not wanted any more

PAGE = "page"  # number, page: empty if none of the jobs looked at is part of the answer
END = "end"  # number, sentence: why the database can't be read; empty at the end of the answer
DEFECT = "defect"  # number: the reader has met an error of its own

PAGES_AHEAD = 2
