"""The paper's definitions, lemmas and theorems for one world, as printed and corrected, beside what runs do.

    python -m studies.paper.theory lavacross-easy
    python -m studies.paper.theory lavacross-easy --potential phi.parquet

The proofs, and what each column means, are in studies/paper/theory.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich.table

from causal_shaping.cli._terminal import progress_bar, wide_console
from causal_shaping.errors import CausalShapingError
from causal_shaping.shaping.potentials import load_ceilings_or_potential
from causal_shaping.worlds import load_world
from studies.pages import Table
from studies.paper.theory.examination import Examination, examine, usual_potentials
from studies.paper.theory_tables import bounds_table, contraction_table, events_table


def main(arguments: Sequence[str]) -> int:
    """Examine what is asked for and print it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", help="the name of a world, or the file of a map")
    parser.add_argument("--potential", type=Path, help="a file of ceilings or of a potential, beside the usual four")
    parser.add_argument("--episodes", type=int, default=1_000, help="of the runs and of the bounds (%(default)s)")
    parser.add_argument("--seeds", type=int, default=20, help="runs of each learner (%(default)s)")
    given = parser.parse_args(arguments)
    try:
        world = load_world(given.world)
        potentials: dict[str, Any] = dict(usual_potentials(world))
        if given.potential is not None:
            potentials[given.potential.name] = load_ceilings_or_potential(given.potential)
        with progress_bar() as progress:
            found = examine(world, potentials, episodes=given.episodes, seeds=given.seeds, progress=progress)
    except CausalShapingError as error:
        parser.exit(2, f"error: {error}\n")
    show(found)
    return 0


def show(found: Examination) -> None:
    """Print the setting, whether each potential is conservatively optimistic, and the report's tables."""
    console = wide_console(220)
    console.print(found.setting)
    for one in found.potentials:
        console.print(f"{one['potential']}: {one['optimism'].verdict}")
    console.print(
        "Q-UCB: a bound of {q_ucb_bound:.2g}, useful from {q_ucb_useful_from:.2g} episodes. A star marks a bound that "
        "is vacuous: no episode can lose so much.".format(**found.potentials[0])
    )
    for table in (bounds_table([found]), events_table([found]), contraction_table([found])):
        console.print(printed(table, found.world))


def printed(table: Table, world: str) -> rich.table.Table:
    """Return a table of the report for the terminal, where each line of a cell would be escaped, without the world."""
    result = rich.table.Table(*(head.replace("\n", " ") for head in table.columns), title=table.title)
    for row in table.rows:
        result.add_row(*(cell.removeprefix(f"{world}\n").replace("\n", ", ") for cell in row))
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
