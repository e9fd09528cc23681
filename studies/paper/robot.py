"""The walking robot: the paper's three tables and both examples, beside our results: `robot_tables`.

`PRINTED_...` are the values printed in the paper, by place 0 .. 10, unstable and stable.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
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


def robot_tables(seeds: int = SEEDS) -> list[Table]:
    """Return the three tables, and one of the two examples."""
    world = load_world(ROBOT)
    at = np.array([[world.state_at(place, stable) for stable in (0, 1)] for place in range(11)])
    logs = {name: [world.collect(name, LOG_STEPS, seed) for seed in range(seeds)] for name in world.demonstrators}
    best = world.model.optimum().values
    optimum = {
        "behavioural": seen_optimum(world.model, world.horizon)[at],
        "behavioural, printed": PRINTED_SEEING,
        "interventional": best[at],
        "interventional, printed": PRINTED_OPTIMUM,
    }
    other = _with_penalty(world, PRINTED_PENALTY)
    penalised = [other.collect("incompetent", LOG_STEPS, seed) for seed in range(seeds)]
    behaviour = {
        "competent": _mean_values(logs["competent"])[at],
        "competent, printed": PRINTED_COMPETENT,
        "incompetent": _mean_values(logs["incompetent"])[at],
        "incompetent, printed": PRINTED_INCOMPETENT,
        f"with {PRINTED_PENALTY:g}": _mean_values(penalised)[at],
    }
    counts = count([some[0] for some in logs.values()])
    population = [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]
    ceilings = {
        "printed": PRINTED_CEILINGS,
        f"stationary, H = {PRINTED_HORIZON}": _published(counts, PRINTED_HORIZON, True)[at],
        f"stationary, H = {world.horizon}": _published(counts, world.horizon, True)[at],
        f"by step, H = {world.horizon}": _published(counts, world.horizon, False)[at],
        "joint, population": value_ceilings(population, world.horizon, REWARD_MAX).values[0][at],
        "V*": world.model.optimum(world.horizon).values[0][at],
    }
    return [
        _by_place(
            "robot-optimum",
            "Walking robot: optimal values",
            "The optimal values of an agent that sees the noise (behavioural) and of one that does not "
            "(interventional), ours and printed.",
            optimum,
        ),
        _by_place(
            "robot-behaviour",
            "Walking robot: what the demonstrators earn",
            f"Every-visit Monte Carlo means of logs of {LOG_STEPS:,} steps, over seeds, beside the printed values. The "
            f"printed values of the incompetent demonstrator fit a reward of {PRINTED_PENALTY:g} for unstable and "
            "wrong (last columns), the optimal values one of -1. Truncated episodes count as they are: unstable "
            "states are visited late, with few steps left. Over a full episode the incompetent demonstrator earns "
            "more from stable states than from unstable ones (table of the examples). A dash: never visited.",
            behaviour,
        ),
        _by_place(
            "robot-ceilings",
            "Walking robot: ceilings",
            f"The paper's bound (b = 1, logs of {LOG_STEPS:,} steps, seed 0), stationary, where H only sets "
            "omega = (H - 1) b, and by step; the joint ceiling with observed support, from population counts; and V*.",
            ceilings,
        ),
        _examples(world, logs, best),
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


def _mean_values(logs: Sequence[Logs]) -> FloatArray:
    """Return the mean behaviour values over the logs that visited a state: float64 [states], NaN where none did."""
    values = np.array([behaviour_values(one) for one in logs])
    known = (~np.isnan(values)).sum(axis=0)
    return np.where(known > 0, np.nansum(values, axis=0) / np.maximum(known, 1), np.nan)


def _published(counts: Any, horizon: int, stationary: bool) -> FloatArray:
    """Return the paper's bound at the first step: float64 [states]."""
    with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
        found = value_ceilings(counts, horizon, REWARD_MAX, method="paper", stationary=stationary)
    return found.values if stationary else found.values[0]


def _by_place(name: str, title: str, caption: str, columns: Mapping[str, Any]) -> Table:
    """Return a table with a row per place and two columns, unstable and stable, for each entry, [places, 2]."""
    heads = [f"{head}\n{status}" for head in columns for status in ("unstable", "stable")]
    numbers = np.hstack([np.asarray(column, dtype=np.float64) for column in columns.values()]).tolist()
    rows = [
        [str(place), *(NOTHING if np.isnan(number) else f"{number:.2f}" for number in row)]
        for place, row in enumerate(numbers)
    ]
    keys = ["place", *(head.replace("\n", ", ") for head in heads)]
    records = [dict(zip(keys, (place, *row), strict=True)) for place, row in enumerate(numbers)]
    return Table(name, title, caption, ["place", *heads], rows, records)


def _examples(world: World, logs: Mapping[str, Sequence[Logs]], best: FloatArray) -> Table:
    """Return the table of Examples 2 and 3: which status looks better at place 0 under each potential."""
    every, H = [count(list(sources)) for sources in zip(*logs.values(), strict=True)], world.horizon
    # Of each potential: its printed values, and ours by seed.
    potentials: dict[str, tuple[tuple[float, float] | None, list[FloatArray]]] = {
        "V* (Example 2)": ((5.0, 5.5), [best])
    }
    for name, printed in (("competent", (10.0, 10.0)), ("incompetent", (-23.0, -42.0))):
        logged = [behaviour_values(one) for one in logs[name]]
        only = world.model.demonstrated(world.demonstrators[name])  # in which every action is the demonstrator's
        full = only.evaluate(np.zeros(len(world.states), dtype=np.int32), H).values[0]
        potentials[f"behaviour of the {name}, as logged (Example 2)"] = printed, logged
        potentials[f"behaviour of the {name}, over a full episode"] = None, [full]
    for horizon in (H, PRINTED_HORIZON):
        stationary = [_published(one, horizon, True) for one in every]
        potentials[f"the paper's bound, stationary, H = {horizon} (Example 3)"] = (9.0, 9.5), stationary
    potentials["the paper's bound, by step"] = None, [_published(one, H, False) for one in every]
    potentials["joint ceilings"] = None, [value_ceilings(one, H, REWARD_MAX).values[0] for one in every]

    rows, records = [], []
    for what, (print_, values) in potentials.items():
        pairs = np.array(values)[:, [world.state_at(0, 0), world.state_at(0, 1)]]
        gain, numbers = float((pairs[:, 1] - pairs[:, 0]).mean()), [mean_interval(column) for column in pairs.T]
        better = "stable" if gain > 1e-9 else "unstable" if gain < -1e-9 else "neither"
        theirs = [NOTHING] * 2 if print_ is None else [f"{value:g}" for value in print_]
        rows.append([what, *theirs, *(interval_text(number, 2) for number in numbers), better])
        records.append({"potential": what, "unstable": numbers[0][0], "stable": numbers[1][0], "prefers": better})
        records[-1] |= dict(zip(("printed_u", "printed_s"), print_ or (), strict=False))
    return Table(
        "robot-examples",
        "Walking robot: Examples 2 and 3",
        "The status that looks better under each potential; stable is right. Values at place 0, over seeds.",
        ["potential at place 0", "printed\nunstable", "printed\nstable", "unstable", "stable", "looks better"],
        rows,
        records,
    )
