"""The walking robot: the paper's three tables and both examples, beside our results.

- `robot_tables`: the tables.
- `seen_optimum`: the optimal values of an agent that sees the noise.
- `PRINTED_...`: the values printed in the paper, by place 0 .. 10, unstable and stable.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from causal_shaping.bounds import value_ceilings
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.logs import Logs
from causal_shaping.errors import AssumptionWarning
from causal_shaping.learners.intervals import mean_interval
from causal_shaping.logs import count
from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.worlds import World, load_world
from studies.pages import NOTHING, Table, interval_text
from studies.paper.baselines import behaviour_values
from studies.paper.plan import ROBOT, SEEDS

LOG_STEPS = 10_000
REWARD_MAX = 1.0
PRINTED_HORIZON = 9
"""The horizon whose stationary bound fits the printed ceilings; the paper's text says 30."""

PRINTED_PENALTY = -1.5
"""The reward for unstable and wrong that fits the printed table of the incompetent demonstrator; the text says -1."""

Pairs = Sequence[tuple[float, float]]
PRINTED_SEEING: Pairs = [(10.0 - place, 10.0 - place) for place in range(11)]
PRINTED_OPTIMUM: Pairs = [*((5.0 - place / 2, 5.5 - place / 2) for place in range(9)), (0.0, 1.0), (0.0, 0.0)]
PRINTED_COMPETENT: Pairs = [*((10.0 - place, 10.0 - place) for place in range(9)), (1.0, 0.0), (0.0, 0.0)]
PRINTED_INCOMPETENT: Pairs = [
    *((-22.5, -41.7), (-21.8, -40.1), (-21.0, -38.4), (-20.25, -36.9), (-19.5, -34.5), (-18.75, -33.6)),
    *((-18.0, -32.5), (-17.3, -32.1), (-16.5, -31.5), (0.0, 0.0), (0.0, 0.0)),
]
PRINTED_CEILINGS: Pairs = [
    *((7.6, 9.3), (7.5, 9.3), (7.5, 9.3), (7.6, 9.3), (7.6, 9.3), (7.9, 9.1)),
    *((8.0, 8.9), (7.9, 8.6), (7.6, 7.6), (5.3, 5.3), (0.0, 0.0)),
]


def seen_optimum(model: TabularCMDP, horizon: int) -> FloatArray:
    """Return the optimal values at the first step of an agent that sees the noise before it acts: float64 [states]."""
    values = np.zeros(len(model.terminal))
    for _ in range(horizon):
        paid = model.reward + values[model.next_state]  # [states, actions, noises]
        values = (paid.max(axis=1) * model.noise).sum(axis=-1)
    return values


def _with_penalty(world: World, penalty: float) -> World:
    """Return the robot with another reward for unstable and wrong."""
    model = world.model
    reward = np.where(model.reward == model.reward.min(), penalty, model.reward)
    changed = TabularCMDP(
        model.next_state, reward, model.noise, model.terminal, model.start, model.states, model.actions
    )
    return replace(world, model=changed)


def demonstrated_values(world: World, name: str) -> FloatArray:
    """Return the exact expected return of a demonstrator over a full episode from each state: float64 [states]."""
    only = world.model.demonstrated(world.demonstrators[name])
    return np.asarray(only.evaluate(np.zeros(len(world.states), dtype=np.int32), world.horizon).values[0])


def robot_tables(seeds: int = SEEDS) -> list[Table]:
    """Return the three tables, and one of the two examples."""
    world = load_world(ROBOT)
    logs = {name: [world.collect(name, LOG_STEPS, seed) for seed in range(seeds)] for name in world.demonstrators}
    return [_optimum_table(world), _behaviour_table(world, logs), _ceiling_table(world, logs), _examples(world, logs)]


def _by_place(world: World, values: FloatArray) -> list[tuple[float, float]]:
    places = len(world.states) // 2
    return [(float(values[world.state_at(i, 0)]), float(values[world.state_at(i, 1)])) for i in range(places)]


def _table(name: str, title: str, caption: str, columns: dict[str, list[tuple[float, float]]]) -> Table:
    """Return a table with a row per place and two columns, unstable and stable, for each entry."""
    heads = ["place", *(f"{head}\n{status}" for head in columns for status in ("unstable", "stable"))]
    rows, records = [], []
    for place in range(11):
        numbers = [pair[stable] for pair in (column[place] for column in columns.values()) for stable in (0, 1)]
        rows.append([str(place), *(NOTHING if np.isnan(number) else f"{number:.2f}" for number in numbers)])
        records.append(
            {"place": place} | dict(zip((head.replace("\n", ", ") for head in heads[1:]), numbers, strict=True))
        )
    return Table(name, title, caption, heads, rows, records)


def _optimum_table(world: World) -> Table:
    seen, best = seen_optimum(world.model, world.horizon), world.model.optimum().values
    return _table(
        "robot-optimum",
        "Walking robot: optimal values",
        "The optimal values of an agent that sees the noise (behavioural) and of one that does not (interventional), "
        "ours and printed.",
        {
            "behavioural": _by_place(world, seen),
            "behavioural, printed": list(PRINTED_SEEING),
            "interventional": _by_place(world, best),
            "interventional, printed": list(PRINTED_OPTIMUM),
        },
    )


def _mean_values(logs: Sequence[Logs]) -> FloatArray:
    """Return the mean behaviour values over the logs that visited a state: float64 [states], NaN where none did."""
    values = np.array([behaviour_values(one) for one in logs])
    known = (~np.isnan(values)).sum(axis=0)
    return np.where(known > 0, np.nansum(values, axis=0) / np.maximum(known, 1), np.nan)


def _behaviour_table(world: World, logs: dict[str, Any]) -> Table:
    found = {name: _mean_values(some) for name, some in logs.items()}
    other = _with_penalty(world, PRINTED_PENALTY)
    seeds = range(len(logs["incompetent"]))
    penalised = _mean_values([other.collect("incompetent", LOG_STEPS, seed) for seed in seeds])
    return _table(
        "robot-behaviour",
        "Walking robot: what the demonstrators earn",
        f"Every-visit Monte Carlo means of logs of {LOG_STEPS:,} steps, over seeds, beside the printed values. The "
        f"printed values of the incompetent demonstrator fit a reward of {PRINTED_PENALTY:g} for unstable and wrong "
        "(last columns), the optimal values one of -1. Truncated episodes count as they are: unstable states are "
        "visited late, with few steps left. Over a full episode the incompetent demonstrator earns more from stable "
        "states than from unstable ones (table of the examples). A dash: never visited.",
        {
            "competent": _by_place(world, found["competent"]),
            "competent, printed": list(PRINTED_COMPETENT),
            "incompetent": _by_place(world, found["incompetent"]),
            "incompetent, printed": list(PRINTED_INCOMPETENT),
            f"with {PRINTED_PENALTY:g}": _by_place(world, penalised),
        },
    )


def _paper_ceilings(counts: Any, horizon: int, stationary: bool) -> FloatArray:
    with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
        found = value_ceilings(counts, horizon, REWARD_MAX, method="paper", stationary=stationary)
    return found.values if stationary else found.values[0]


def _ceiling_table(world: World, logs: dict[str, Any]) -> Table:
    counts = count([some[0] for some in logs.values()])
    population = [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]
    columns = {
        "printed": list(PRINTED_CEILINGS),
        f"stationary, H = {PRINTED_HORIZON}": _by_place(world, _paper_ceilings(counts, PRINTED_HORIZON, True)),
        f"stationary, H = {world.horizon}": _by_place(world, _paper_ceilings(counts, world.horizon, True)),
        f"by step, H = {world.horizon}": _by_place(world, _paper_ceilings(counts, world.horizon, False)),
        "joint, population": _by_place(world, value_ceilings(population, world.horizon, REWARD_MAX).values[0]),
        "V*": _by_place(world, world.model.optimum(world.horizon).values[0]),
    }
    return _table(
        "robot-ceilings",
        "Walking robot: ceilings",
        f"The paper's bound (b = 1, logs of {LOG_STEPS:,} steps, seed 0), stationary, where H only sets "
        "omega = (H - 1) b, and by step; the joint ceiling with observed support, from population counts; and V*.",
        columns,
    )


def _examples(world: World, logs: dict[str, Any]) -> Table:
    """Return the table of Examples 2 and 3: which status looks better at place 0 under each potential."""
    unstable, stable = world.state_at(0, 0), world.state_at(0, 1)
    rows, records = [], []

    def add(what: str, printed: tuple[float, float] | None, values: Sequence[FloatArray]) -> None:
        pairs = np.array([[one[unstable], one[stable]] for one in values])
        numbers = [mean_interval(pairs[:, side]) for side in (0, 1)]
        gain = float((pairs[:, 1] - pairs[:, 0]).mean())
        better = "stable" if gain > 1e-9 else "unstable" if gain < -1e-9 else "neither"
        ours = [interval_text(number, 2) for number in numbers]
        theirs = [NOTHING] * 2 if printed is None else [f"{value:g}" for value in printed]
        rows.append([what, *theirs, *ours, better])
        record = {"potential": what, "unstable": numbers[0][0], "stable": numbers[1][0], "prefers": better}
        records.append(
            record | ({} if printed is None else dict(zip(("printed_u", "printed_s"), printed, strict=True)))
        )

    counts = [count([some[seed] for some in logs.values()]) for seed in range(len(next(iter(logs.values()))))]
    add("V* (Example 2)", (5.0, 5.5), [world.model.optimum().values])
    for name, printed in (("competent", (10.0, 10.0)), ("incompetent", (-23.0, -42.0))):
        add(f"behaviour of the {name}, as logged (Example 2)", printed, [behaviour_values(one) for one in logs[name]])
        add(f"behaviour of the {name}, over a full episode", None, [demonstrated_values(world, name)])
    for horizon in (world.horizon, PRINTED_HORIZON):
        stationary = [_paper_ceilings(one, horizon, True) for one in counts]
        add(f"the paper's bound, stationary, H = {horizon} (Example 3)", (9.0, 9.5), stationary)
    add("the paper's bound, by step", None, [_paper_ceilings(one, world.horizon, False) for one in counts])
    add("joint ceilings", None, [value_ceilings(one, world.horizon, REWARD_MAX).values[0] for one in counts])
    heads = ["potential at place 0", "printed\nunstable", "printed\nstable", "unstable", "stable", "looks better"]
    return Table(
        "robot-examples",
        "Walking robot: Examples 2 and 3",
        "The status that looks better under each potential; stable is right. Values at place 0, over seeds.",
        heads,
        rows,
        records,
    )
