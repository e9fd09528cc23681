"""The theory in the report: what the theorems guarantee in each world, and corrections of the printed statements.

- `theory_tables`: the tables.
- `draw_theory`: regret bounds over episodes, one panel per world.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from causal_shaping.worlds import World, load_world
from studies.pages import NOTHING, Table
from studies.paper.plan import ROBOT
from studies.paper.theory.contraction import CausalBellman, contraction
from studies.paper.theory.corrections import corrections
from studies.paper.theory.events import INEQUALITIES
from studies.paper.theory.examination import Examination, examine
from studies.paper.theory.picture import draw_bounds
from studies.paper.theory.regret import RegretBound
from studies.paper.theory.shaped import Optimism

EPISODES, SEEDS = 1_000, 20
COLUMNS = 3
"""The number of panels side by side."""


@cache
def examined(name: str) -> Examination:
    """Return the theory of a world with standing coins; it is computed once."""
    return examine(load_world(name), episodes=EPISODES, seeds=SEEDS)


def theory_tables(worlds: Sequence[str]) -> list[Table]:
    """Return the tables on the theory of some worlds."""
    found = [examined(name) for name in worlds]
    return [bounds_table(found), events_table(found), contraction_table(found), _corrections_table()]


def bounds_table(found: Sequence[Examination]) -> Table:
    """What the theorems guarantee for each potential, printed and corrected, beside what runs do."""
    rows = [
        [
            f"{world.world}\n{one.name}",
            _distance(one.optimism),
            f"{one.in_sub_delta} of {one.pairs}",
            _bound(one.printed_bound),
            _number(one.printed_useful_from),
            f"{one.printed_regret[0]:.0f}",
            _number(one.printed_tightness),
            NOTHING if one.settled is None else f"{one.settled:,} of {one.suboptimal:,}",
            _bound(one.bound),
            _number(one.useful_from),
            f"{one.regret[0]:.0f}",
            _number(one.tightness),
            f"{min(one.held.values()):.0%}",
            f"{one.needed_c:.2g}",
        ]
        for world in found
        for one in world.potentials
    ]
    heads = [
        "potential",
        "phi - V*",
        "printed\nin Sub_Delta",
        "printed\nbound",
        "printed\nuseful from",
        "printed\nregret",
        "printed\nbound / regret",
        "settled",
        "bound",
        "useful from",
        "regret",
        "bound / regret",
        "events held",
        "smallest c",
    ]
    return Table(
        "theory-bounds",
        "What the theorems guarantee, and what runs do",
        f"After {EPISODES:,} episodes with a table per step, means over {SEEDS} runs, potentials from population "
        "counts. phi - V* is a mean over steps and states, or the number of them at which phi is below V*. As printed: "
        "rewards moved to 0 to 1, c = 4, the sum over suboptimal pairs only, in units of the world's reward. Then the "
        "corrected theorem for potentials of any sign with c = 1: the number of suboptimal (h, s, x) that the "
        "potential settles, the bound, the share of runs in which its events held, and the smallest c for which the "
        "concentration lemma would have held in all runs. Useful from: the number of episodes from which on a bound "
        "is not vacuous. A star: the bound is vacuous, since no episode can lose so much. A dash: the potential is not "
        "a ceiling, so that no theorem applies, or there is no regret. Under a ceiling both learners keep the first "
        "action that they try for longer than the run lasts: a proven bonus costs more than it gains here.",
        heads,
        rows,
        [record for world in found for record in world.rows()],
    )


def _bound(bound: RegretBound | None) -> str:
    """Return a bound on the regret with a star if it is vacuous, or a dash if there is none."""
    return NOTHING if bound is None else f"{bound.total:.2g}{'*' if bound.vacuous else ''}"


def _number(number: float | None) -> str:
    """Return a number with two digits, or a dash if there is none."""
    return f"{number:.2g}" if number is not None and math.isfinite(number) else NOTHING


def _distance(optimism: Optimism) -> str:
    """Return the mean distance of a ceiling to V*, or the number of steps and states at which phi is below."""
    if optimism.holds.all():
        return f"{np.nanmean(optimism.distance):.3g}"
    return f"below at {(~optimism.holds).sum()}"


def events_table(found: Sequence[Examination]) -> Table:
    """The share of runs in which each inequality of the proofs held, by the size of the bonus."""
    rows, records = [], []
    for world in found:
        for learner, sweeps in (("corrected", world.smaller), ("printed", world.printed_smaller)):
            for sweep in sweeps:
                shares = [f"{share:.0%}" for share in sweep.held.values()]
                rows.append(
                    [f"{world.world}\n{learner}, {world.swept}", f"{sweep.c:g}", *shares, f"{sweep.regret:.0f}"]
                )
                about = {"world": world.world, "learner": learner, "potential": world.swept, "c": sweep.c}
                records.append(about | dict(sweep.held) | {"regret": sweep.regret})
    return Table(
        "theory-events",
        "At which bonus the events of the proofs break",
        f"The share of {SEEDS} runs of {EPISODES:,} episodes in which each inequality held at every step: Q^k >= Q*; "
        "the upper bound on their difference; suboptimal actions are overestimated by at least their gap when taken; "
        "the clipped recursion; the concentration of y + phi, which settling needs. c = 1 is proven for the corrected "
        "learner; the paper has c = 4 for the printed one.",
        ["world", "c", *INEQUALITIES, "regret"],
        rows,
        records,
    )


def contraction_table(found: Sequence[Examination]) -> Table:
    """Whether the causal Bellman operator of each source contracts."""
    robot = load_world(ROBOT)
    at_random = np.full((*robot.model.noise.shape, len(robot.actions)), 1 / len(robot.actions))
    operator = CausalBellman(robot.model.observe(at_random, "at random"), robot.model.reward_range[1])
    every = [(world.world, source, one) for world in found for source, one in world.contractions.items()]
    every.append((ROBOT, "at random", contraction(operator)))
    return Table(
        "theory-contraction",
        "Where the causal Bellman operator contracts",
        "The sets of the appendix's proposition, from the population counts of each source; and for a robot that acts "
        "at random, of which the paper has no log.",
        ["source", "verdict"],
        [[f"{world}\n{source}", one.verdict] for world, source, one in every],
        [
            {"world": world, "source": source, "applies": one.applies, "verdict": one.verdict}
            for world, source, one in every
        ],
    )


def _corrections_table() -> Table:
    found = corrections()
    return Table(
        "theory-corrections",
        "Printed and corrected",
        "Statements that are false, or say nothing, as printed (the last one is not in the paper, but an obvious next "
        "idea): a quantity in an example and its claimed bound, then the same for the statement that is true instead.",
        ["statement", "quantity", "found", "claimed", "instead", "found", "true"],
        [
            [
                one.statement,
                one.quantity,
                f"{one.found:.4g}",
                f"at most {one.printed:.4g}",
                one.instead,
                f"{one.true_found + 0.0:.4g}",
                f"at most {one.true_bound:.4g}",
            ]
            for one in found
        ],
        [asdict(one) for one in found],
    )


def draw_theory(worlds: Mapping[str, World]) -> Figure:
    """Draw the regret bounds of each world over episodes, beside measured regret."""
    rows = -(-len(worlds) // COLUMNS)
    figure = Figure(figsize=(4.6 * min(COLUMNS, len(worlds)) + 2, 3.4 * rows), layout="constrained")
    panels: Any = figure.subplots(rows, min(COLUMNS, len(worlds)), squeeze=False).ravel()
    for axes, world in zip(panels, worlds.values(), strict=False):
        draw_bounds(world, axes=axes)
        if axes is not panels[min(COLUMNS, len(worlds)) - 1]:
            axes.get_legend().remove()
    for axes in panels[len(worlds) :]:
        axes.set_visible(False)
    return figure
