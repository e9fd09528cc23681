"""Tables of an examination for people, as the command `theory` prints them.

- `print_examination`: print all of it to a console.
- `number_text`, `bound_text`: numbers that may be missing, as text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Column, Table

from studies.paper.theory.examination import Examination
from studies.paper.theory.regret import RegretBound

NOTHING = "-"


def print_examination(found: Examination, console: Console) -> None:
    """Print the setting, five tables and the findings; they need a width of about 130 characters."""
    console.print(found.setting)
    measured = ("bound", "useful from", "regret", "bound / regret")
    optimism = [(one.name, one.optimism.verdict) for one in found.potentials]
    title = "Conservative optimism (definition 4.1): V* <= phi <= H b at every step"
    _print_table(console, title, ["potential", "verdict"], optimism)
    _print_table(
        console,
        "As printed, for rewards from 0 to 1, in units of this world",
        ["potential", *_right("in Sub_Delta", "visits / bound", *measured)],
        [
            (
                one.name,
                f"{one.in_sub_delta} of {one.pairs}",
                number_text(one.printed_visits_over_bound),
                bound_text(one.printed_bound),
                number_text(one.printed_useful_from),
                f"{one.printed_regret[0]:.4g}",
                number_text(one.printed_tightness),
            )
            for one in found.potentials
        ],
    )
    corrected = [
        (
            one.name,
            NOTHING if one.settled is None else f"{one.settled:,} of {one.suboptimal:,}",
            number_text(one.visits_over_bound),
            bound_text(one.bound),
            number_text(one.useful_from),
            f"{one.regret[0]:.4g}",
            number_text(one.tightness),
            f"{min(one.held.values()):.0%}",
            f"{one.needed_c:.2g}",
        )
        for one in found.potentials
    ]
    corrected.append(("Q-UCB", "", "", bound_text(found.q_ucb), number_text(found.q_ucb_useful_from), "", "", "", ""))
    heads = _right("settled", "visits / bound", *measured, "events held", "smallest c")
    _print_table(console, "Corrected, for potentials of any sign", ["potential", *heads], corrected)
    for title, sweeps in (
        (f"Smaller bonuses: corrected learner, {found.swept}; c = 1 is proven", found.smaller),
        (f"Smaller bonuses: printed learner, {found.swept}, rewards from 0 to 1", found.printed_smaller),
    ):
        rows = [(f"{c:g}", *(f"{share:.0%}" for share in held.values()), f"{regret:.4g}") for c, held, regret in sweeps]
        _print_table(console, title, ["c", *_right(*sweeps[0].held, "regret")], rows)
    contractions = [(source, one.verdict) for source, one in found.contractions.items()]
    heads = ["source", "the causal Bellman operator"]
    _print_table(console, "Proposition H.2: is it a contraction?", heads, contractions)
    for sentence in found.findings():
        console.print(f"- {sentence}")


def _right(*heads: str) -> list[Column | str]:
    return [Column(head, justify="right") for head in heads]


def _print_table(console: Console, title: str, heads: Sequence[Column | str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(*heads, title=title)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def bound_text(bound: RegretBound | None, vacuous: str = " (vacuous)") -> str:
    """Return a bound on the regret with a mark if it is vacuous, or a dash if there is none."""
    return NOTHING if bound is None else f"{bound.total:.2g}{vacuous if bound.vacuous else ''}"


def number_text(number: float | None) -> str:
    """Return a number with two digits, or a dash if there is none."""
    return f"{number:.2g}" if number is not None and math.isfinite(number) else NOTHING
