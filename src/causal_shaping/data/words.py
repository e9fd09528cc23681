"""States in words: bins as ranges of numbers, with the names of their columns."""

from __future__ import annotations

from causal_shaping.data.result import state_parts
from causal_shaping.data.space import Space


def part_text(space: Space, column: str, part: int | str) -> str:
    """Return one part of a state's label; a bin as the range that it stands for.

    Examples:
        >>> from causal_shaping import Bins
        >>> space = Space([0, 1, 2], ["go"], ["age"], bins={"age": Bins(edges=(18, 65))})
        >>> [part_text(space, "age", part) for part in range(3)]
        ['below 18', '18 to below 65', '65 and above']
    """
    if column in space.missing and space.missing[column] == part:
        return "missing"
    if column not in space.bins or not isinstance(part, int):
        return str(part)
    edges = [f"{edge:.6g}" for edge in space.bins[column].edges]
    if part == 0:
        return f"below {edges[0]}"
    if part >= len(edges):
        return f"{edges[-1]} and above"
    return f"{edges[part - 1]} to below {edges[part]}"


def state_text(space: Space, state: int) -> str:
    """Return a state in words: its label, or where there are bins, each column with its range.

    Examples:
        >>> from causal_shaping import Bins
        >>> state_text(Space([(3, 1)], ["go"]), 0)
        '(3, 1)'
        >>> columns, bins = ["age", "stage"], {"age": Bins(edges=(65,))}
        >>> state_text(Space([(1, "mild")], ["go"], columns, bins=bins), 0)
        'age 65 and above, stage mild'
    """
    label = state_parts(space, state)
    parts = {name: part_text(space, name, part) for name, part in label.items()}
    if space.bins:
        return ", ".join(f"{name} {part}" for name, part in parts.items())
    if len(parts) == 1:
        return next(iter(parts.values()))
    return f"({', '.join(parts.values())})"
