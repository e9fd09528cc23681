"""The errors of the package: one root, a few named children.

Each message says what is wrong, where, and what to do about it.
"""


class CausalShapingError(Exception):
    """The root of every error that this package raises on purpose."""


class DataError(CausalShapingError):
    """A `Space`, `Logs` or `Counts` that is not what it claims to be."""


class ContradictionError(DataError):
    """Sources that cannot all be right at the confounding that is declared for them."""


class ModelError(CausalShapingError):
    """A CMDP with inconsistent tables, or a question that it has no answer to."""


class MapError(CausalShapingError):
    """A grid map that cannot be read; the message gives line and column."""


class UnknownNameError(CausalShapingError):
    """A world, demonstrator or label that does not exist; the message lists those that do."""


class UnknownLabelError(UnknownNameError):
    """A label in a table that was not declared.

    Attributes:
        columns: the columns that make it.
        parts: what they hold.
    """

    def __init__(self, message: str, columns: tuple[str, ...], parts: tuple[int | str, ...]) -> None:
        super().__init__(message)
        self.columns, self.parts = columns, parts


class FileError(CausalShapingError):
    """A file that cannot be read or written."""
