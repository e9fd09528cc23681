"""The theory in the report: what the theorems guarantee in each world, and corrections of the printed statements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from causal_shaping.worlds import load_world
from studies.pages import NOTHING, Table
from studies.paper.plan import ROBOT
from studies.paper.theory.contraction import CausalBellman, contraction
from studies.paper.theory.corrections import corrections
from studies.paper.theory.events import INEQUALITIES
from studies.paper.theory.examination import Examination, examine
from studies.paper.theory.shaped import Optimism

EPISODES, SEEDS = 1_000, 20


@cache
def examined(name: str) -> Examination:
    """Return the theory of a world with standing coins; it is computed once."""
    return examine(load_world(name), episodes=EPISODES, seeds=SEEDS)


def theory_tables(worlds: Sequence[str]) -> list[Table]:
    """Return the tables on the theory of some worlds."""
    found = [examined(name) for name in worlds]
    return [bounds_table(found), events_table(found), contraction_table(found), corrections_table()]


def bounds_table(found: Sequence[Examination]) -> Table:
    """What the theorems guarantee for each potential, printed and corrected, beside what runs do."""
    records = [one for world in found for one in world.potentials]
    episodes = found[0].episodes if found else EPISODES
    columns: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "potential": lambda one: f"{one['world']}\n{one['potential']}",
        "phi - V*": lambda one: _distance(one["optimism"]),
        "printed\nin Sub_Delta": lambda one: f"{one['in_sub_delta']} of {one['pairs']}",
        "printed\nbound": lambda one: _bound(one["printed_bound"], one["printed_useful_from"], episodes),
        "printed\nuseful from": lambda one: _number(one["printed_useful_from"]),
        "printed\nregret": lambda one: f"{one['printed_regret']:.0f}",
        "printed\nbound / regret": lambda one: _ratio(one["printed_bound"], one["printed_regret"]),
        "settled": lambda one: NOTHING if one["settled"] is None else f"{one['settled']:,} of {one['suboptimal']:,}",
        "bound": lambda one: _bound(one["bound"], one["useful_from"], episodes),
        "useful from": lambda one: _number(one["useful_from"]),
        "regret": lambda one: f"{one['regret']:.0f}",
        "bound / regret": lambda one: _ratio(one["bound"], one["regret"]),
        "events held": lambda one: f"{min(one[f'held_{name}'] for name in INEQUALITIES):.0%}",
        "smallest c": lambda one: f"{one['needed_c']:.2g}",
    }
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
        list(columns),
        [[cell(one) for cell in columns.values()] for one in records],
        [{key: one[key] for key in one if key != "optimism"} for one in records],
    )


def _bound(bound: float | None, useful_from: float, episodes: int) -> str:
    """Return a bound on the regret with a star if it is vacuous, or a dash if there is none."""
    return NOTHING if bound is None else f"{bound:.2g}{'*' if useful_from > episodes else ''}"


def _number(number: float | None) -> str:
    """Return a number with two digits, or a dash if there is none."""
    return f"{number:.2g}" if number is not None and math.isfinite(number) else NOTHING


def _ratio(bound: float | None, regret: float) -> str:
    """Return a bound over the regret of runs, or a dash if either is missing."""
    return _number(bound / regret if bound is not None and regret > 0 else None)


def _distance(optimism: Optimism) -> str:
    """Return the mean distance of a ceiling to V*, or the number of steps and states at which phi is below."""
    if optimism.holds.all():
        return f"{np.nanmean(optimism.distance):.3g}"
    return f"below at {(~optimism.holds).sum()}"


def events_table(found: Sequence[Examination]) -> Table:
    """The share of runs in which each inequality of the proofs held, by the size of the bonus."""
    records = [one for world in found for one in world.sweeps]
    rows = [
        [
            f"{one['world']}\n{one['learner']}, {one['potential']}",
            f"{one['c']:g}",
            *(f"{one[name]:.0%}" for name in INEQUALITIES),
            f"{one['regret']:.0f}",
        ]
        for one in records
    ]
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
    records: list[dict[str, Any]] = [
        {"world": world, "source": source, "applies": one.applies, "verdict": one.verdict}
        for world, source, one in every
    ]
    return Table(
        "theory-contraction",
        "Where the causal Bellman operator contracts",
        "The sets of the appendix's proposition, from the population counts of each source; and for a robot that acts "
        "at random, of which the paper has no log.",
        ["source", "verdict"],
        [[f"{one['world']}\n{one['source']}", one["verdict"]] for one in records],
        records,
    )


def corrections_table() -> Table:
    """What is false as printed, and what is true instead."""
    rows, records = [], []
    for statement, quantity, (found, printed), instead, (true_found, true_bound) in corrections():
        rows.append([statement, quantity, f"{found:.4g}", f"at most {printed:.4g}", instead])
        rows[-1] += [f"{true_found + 0.0:.4g}", f"at most {true_bound:.4g}"]
        records.append({"statement": statement, "quantity": quantity, "found": found, "printed": printed})
        records[-1] |= {"instead": instead, "true_found": true_found, "true_bound": true_bound}
    return Table(
        "theory-corrections",
        "Printed and corrected",
        "Statements that are false, or say nothing, as printed (the last one is not in the paper, but an obvious next "
        "idea): a quantity in an example and its claimed bound, then the same for the statement that is true instead.",
        ["statement", "quantity", "found", "claimed", "instead", "found", "true"],
        rows,
        records,
    )
