"""The guarantees in the report: what the theorems promise in each world, and what is corrected in print.

- `theory_tables`: name, title, caption, heads, rows and records of each table.
- `draw_theory`: bounds over episodes, a panel per world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from causal_shaping.paper.study.plan import ROBOT
from causal_shaping.paper.study.robot import Parts
from causal_shaping.paper.theory import (
    CausalBellman,
    Examination,
    Optimism,
    RegretBound,
    contraction,
    corrections,
    examine,
)
from causal_shaping.paper.theory.events import INEQUALITIES
from causal_shaping.paper.theory.picture import draw_bounds
from causal_shaping.paper.theory.regret import number_text
from causal_shaping.worlds import World, load_world

EPISODES, SEEDS = 1_000, 20
COLUMNS = 3
"""Panels in a row."""


@cache
def examined(name: str) -> Examination:
    """Return the theory of a world with standing coins, computed once."""
    return examine(load_world(name), episodes=EPISODES, seeds=SEEDS)


def theory_tables(worlds: Sequence[str]) -> list[Parts]:
    """Return the tables of the theory of some worlds, as the parts of a `Table`."""
    found = [examined(name) for name in worlds]
    return [_bounds_table(found), _events_table(found), _contraction_table(found), _corrections_table()]


def _bounds_table(found: Sequence[Examination]) -> Parts:
    rows, records = [], []
    for world in found:
        for one in world.potentials:
            rows.append(
                [
                    f"{world.world}\n{one.name}",
                    _distance(one.optimism),
                    f"{one.in_sub_delta} of {one.pairs}",
                    _starred(one.printed),
                    number_text(one.printed_from),
                    f"{one.printed_regret[0]:.0f}",
                    number_text(one.printed_tightness),
                    "-" if one.settled is None else f"{one.settled:,} of {one.suboptimal:,}",
                    _starred(one.bound),
                    number_text(one.bound_from),
                    f"{one.regret[0]:.0f}",
                    number_text(one.tightness),
                    f"{min(one.held.values()):.0%}",
                    f"{one.needed:.2g}",
                ]
            )
            records.append(
                {
                    "world": world.world,
                    "potential": one.name,
                    "conservatively_optimistic": bool(one.optimism),
                    "pairs": one.pairs,
                    "in_sub_delta": one.in_sub_delta,
                    "printed_visits_over_bound": one.printed_visits,
                    "printed_bound": None if one.printed is None else one.printed.total,
                    "printed_useful_from": one.printed_from,
                    "printed_regret": one.printed_regret[0],
                    "suboptimal": one.suboptimal,
                    "settled": one.settled,
                    "visits_over_bound": one.visits,
                    "bound": None if one.bound is None else one.bound.total,
                    "useful_from": one.bound_from,
                    "regret": one.regret[0],
                    "regret_low": one.regret[1],
                    "regret_high": one.regret[2],
                    "q_ucb_bound": world.q_ucb.total,
                    "q_ucb_useful_from": world.q_ucb_from,
                    "needed_c": one.needed,
                    **{f"held_{name}": share for name, share in one.held.items()},
                }
            )
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
    return (
        "theory-bounds",
        "What the theorems promise, and what runs do",
        f"After {EPISODES:,} episodes with a table per step, means over {SEEDS} runs, potentials from population "
        "counts; phi - V* is a mean over steps and states, or at how many of them phi is below. As printed: rewards "
        "moved to 0 to 1, c = 4, the sum over suboptimal pairs only; in units of the world's reward. Then the "
        "corrected theorem for any sign with c = 1: how many suboptimal (h, s, x) the potential settles, the bound, "
        "in how many runs its events held, and the smallest c for which the concentration lemma would have held in "
        "all of them. A star: vacuous, an episode cannot lose so much; useful from so many episodes on. A dash: no "
        "ceiling, so that no theorem speaks of it, or no regret. Under a ceiling both learners keep the first action "
        "that they try for longer than the whole run: a bonus that is proven costs more than it earns here.",
        heads,
        rows,
        records,
    )


def _distance(optimism: Optimism) -> str:
    """Return how far a potential is above V* on average, or at how many steps and states it is below."""
    if optimism.holds.all():
        return f"{np.nanmean(optimism.distance):.3g}"
    return f"below at {(~optimism.holds).sum()}"


def _starred(bound: RegretBound | None) -> str:
    """Return a bound, with a star if it is vacuous."""
    return "-" if bound is None else f"{bound.total:.2g}{'*' if bound.vacuous else ''}"


def _events_table(found: Sequence[Examination]) -> Parts:
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
    return (
        "theory-events",
        "At which bonus the proofs' events break",
        f"Share of {SEEDS} runs of {EPISODES:,} episodes in which each inequality held at every step: Q^k >= Q*; its "
        "upper side; what is taken looks at least as good as its gap; the clipped recursion; the concentration of y + "
        "phi that settling rests on. c = 1 is proven for the corrected learner, c = 4 is the paper's for the printed "
        "one.",
        ["world", "c", *INEQUALITIES, "regret"],
        rows,
        records,
    )


def _contraction_table(found: Sequence[Examination]) -> Parts:
    rows, records = [], []
    for world in found:
        for source, one in world.contractions.items():
            rows.append([f"{world.world}\n{source}", one.verdict])
            records.append({"world": world.world, "source": source, "applies": one.applies, "verdict": one.verdict})
    robot = load_world(ROBOT)
    by_chance = np.full((*robot.model.noise.shape, len(robot.actions)), 1 / len(robot.actions))
    one = contraction(CausalBellman(robot.model.observe(by_chance, "by chance"), robot.model.reward_range[1]))
    rows.append([f"{ROBOT}\nby chance", one.verdict])
    records.append({"world": ROBOT, "source": "by chance", "applies": one.applies, "verdict": one.verdict})
    return (
        "theory-contraction",
        "Where the causal Bellman operator contracts",
        "The sets of the appendix's proposition, from what each source shows, in population; and a robot that acts by "
        "chance, which no log of the paper has.",
        ["source", "verdict"],
        rows,
        records,
    )


def _corrections_table() -> Parts:
    rows, records = [], []
    for one in corrections():
        rows.append(
            [
                one.statement,
                one.quantity,
                f"{one.found:.4g}",
                f"at most {one.printed:.4g}",
                one.instead,
                f"{one.true_found + 0.0:.4g}",
                f"at most {one.true_bound:.4g}",
            ]
        )
        records.append({name: getattr(one, name) for name in one.__dataclass_fields__})
    return (
        "theory-corrections",
        "Printed and corrected",
        "Statements that are false, or say nothing, as printed (the last one is not in print, but the next idea that "
        "one has): a quantity in an example, what is claimed of it, and the same for what is true instead.",
        ["statement", "quantity", "found", "claimed", "instead", "found", "true"],
        rows,
        records,
    )


def draw_theory(worlds: Mapping[str, World]) -> Figure:
    """Draw the bounds of each world's regret over episodes, beside measured regret."""
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
