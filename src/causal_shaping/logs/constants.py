"""The numbers that reading logs depends on, each with its reason."""

FIRST_STEP_LIMIT = 10**9
"""The largest number, of either sign, that the first step of an episode may have: with it, steps
stay far below 2^63."""

SHOWN_COLUMNS = 24
"""A message about a missing column lists no more columns than this, so that it stays readable."""

SHOWN_VALUES = 12
"""A message about a column of text lists no more of its values than this."""

MISSING_NUMBER = -1
"""The label of a missing value in a column of integers or bins, whose labels are numbers."""

SAMPLE_ROWS = 100_000
"""The rows that are looked at before counting, to see whether rewards take many values. To count
each of millions of different rewards would take as much memory as the rows do."""

TILES = 8
"""Quantiles of rewards are computed from the edges of this many groups of rows for each bin. More
groups are more exact where logs of several engines are put together, and take longer."""

QUERIES_TOGETHER = 16
"""The most logs that one statement reads. Ibis nests a union once for each of its parts, and deep
nesting takes long to translate."""

MOST_DOUBTFUL = 10_000
"""If the row check doubts more episodes than this, it puts all rows in order: to pick those of so
many episodes takes longer."""

CSV_LINE_BYTES = 2_000_000
"""A longer line of a CSV is taken for a broken file, such as one without line ends."""

BLOCK_BYTES = 2**20
"""A compressed file is unpacked this many bytes at a time to verify its checksum."""

BATCH_BYTES = 2**24
"""Rows with numbers as states are read about this many bytes at a time: enough to make the cost of
a batch negligible, and small beside IN_MEMORY."""

ROW_BYTES = 64
"""About what a row takes in a batch without its observation."""

IN_MEMORY = 2**30
"""Arrays that take more bytes than this together are kept in files."""

MINARI_BYTES = 2**25
"""Episodes of a Minari data set are converted about this many bytes at a time."""

HDF5_RATIO = 1100
"""HDF5 compresses by no more than this factor, so a data set that declares more was not written
by it."""

HDF5_FREE_BYTES = 2**20
"""What a data set may declare whatever it takes in the file, as small ones may take nothing."""
