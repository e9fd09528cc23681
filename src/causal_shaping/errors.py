"""The errors and warnings of the package: one root, a few named children.

Each message says what is wrong, where, and what to do about it.

- `ArgumentError`, a `ValueError`: an argument that cannot be used. Children: `ModelError`, `MapError`,
  `UnknownNameError`.
- `DataError`: logs, counts or labels that are not sound. Children: `ContradictionError`, `UnknownLabelError`.
- `FileError`: a file that cannot be read or written.
- `MissingExtraError`, an `ImportError`: a part of the package that was not installed.
"""

from __future__ import annotations


class CausalShapingError(Exception):
    """The root of every error that this package raises on purpose."""


class ArgumentError(CausalShapingError, ValueError):
    """An argument that cannot be used."""


class ModelError(ArgumentError):
    """A CMDP with inconsistent tables, or a question that it has no answer to."""


class MapError(ArgumentError):
    """A grid map that cannot be read; the message gives line and column."""


class UnknownNameError(ArgumentError):
    """A world, demonstrator or label that does not exist; the message lists those that do."""


class DataError(CausalShapingError):
    """A `Space`, `Logs`, `Counts` or `Potential` that is not what it claims to be."""


class ContradictionError(DataError):
    """Sources that cannot all be right at the confounding that is declared for them."""


class UnknownLabelError(DataError):
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


class MissingExtraError(CausalShapingError, ImportError):
    """A part of the package that was not installed; the message names the extra to install.

    Args:
        what: what needs it, such as "Figures".
        extra: the name of the extra.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} need an extra: pip install 'causal-shaping[{extra}]'.")
        self.extra = extra


class AssumptionWarning(UserWarning):
    """Something that a bound rests on is doubtful, or fails."""


class ShapingWarning(UserWarning):
    """A potential that does not quite fit an environment, or a learner."""


class DroppedEpisodesWarning(UserWarning):
    """Bad episodes were left out, which selects on outcomes."""
