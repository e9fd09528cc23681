"""The errors of the package: one root, a few named children.

Each message says what is wrong, where, and what to do about it.
"""


class CausalShapingError(Exception):
    """The root of every error that this package raises on purpose."""


class DataError(CausalShapingError):
    """A `Space`, `Logs` or `Counts` that is not what it claims to be."""


class ModelError(CausalShapingError):
    """A CMDP with inconsistent tables, or a question that it has no answer to."""


class MapError(CausalShapingError):
    """A grid map that cannot be read; the message gives line and column."""


class UnknownNameError(CausalShapingError):
    """A world, demonstrator or label that does not exist; the message lists those that do."""


class FileError(CausalShapingError):
    """A file that cannot be read or written."""
