"""The monitor of ceilings over many runs: false alarms where they hold, delay and regret where they do not.

The agent is the learner "q-ucb-shaping", which acts on what it has seen and drops ceilings at an alarm.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import causal_shaping as cs
from causal_shaping.worlds import World

STEPS, RUNS = 20_000, 1_000
STATES, ACTIONS, NOISES, HORIZON = 6, 3, 4, 8
WORLDS = ("windy-empty", "lavacross-easy", "lavacross-hard", "lavacross-maze", "lavacross-maze-fewer-coins")
CALM = (0.0, 0.0, 0.0, 0.0, 1.0)

HOLD = ("ceilings that hold", "the optimum as ceiling", "the optimum as ceiling of returns")
WRONG = ("random, taken as unconfounded", "hostile, taken as unconfounded", "the wind fell", "the wind turned")


def parts() -> list[str]:
    """Return what ceilings are like: those that hold, and those that do not."""
    return [*HOLD, *WRONG]


def costly_world(seed: int, kind: str = "random") -> World:
    """Return a world in which every step costs 1/8 to 1.

    The demonstrator depends on the hidden noise: at random, or "hostile", taking the best action in noise that is bad
    for it and the others in noise that is good for them.
    """
    rng = np.random.default_rng(seed)
    shape = (STATES, ACTIONS, NOISES)
    next_state, reward = rng.integers(0, STATES, size=shape), -rng.integers(1, 9, size=shape) / 8
    next_state[-1], reward[-1] = STATES - 1, 0.0
    start = np.append(np.full(STATES - 1, 1 / (STATES - 1)), 0.0)
    noise = rng.dirichlet(np.full(NOISES, 2.0), STATES)
    model = cs.TabularCMDP(next_state, reward, noise, np.arange(STATES) == STATES - 1, start)
    beta = rng.dirichlet(np.full(ACTIONS, 0.5), (STATES, NOISES))
    if kind == "hostile":
        best = model.optimum(HORIZON)
        luck = reward + best.values[0][next_state]
        luck -= luck.mean(axis=-1, keepdims=True)
        shown = np.where(np.arange(ACTIONS)[:, None] == best.q_values[0].argmax(axis=1)[:, None, None], -luck, luck)
        beta = np.exp(8 * shown.transpose(0, 2, 1))
        beta /= beta.sum(axis=-1, keepdims=True)
    return World("costly", "Costly", model, HORIZON, ("a", "b", "c"), {"demonstrator": beta})


def ceilings_of(world: World, online: World, **options: Any) -> cs.Ceilings:
    """Return the ceilings that the demonstrators of a world prove, for an agent in another."""
    counts = [world.model.observe(beta, source=name) for name, beta in world.demonstrators.items()]
    rewards = np.concatenate([world.model.reward.ravel(), online.model.reward.ravel()])
    known = {"reward_min": float(rewards.min()), **options}
    return cs.value_ceilings(counts, world.horizon, float(rewards.max()), **known)


def optimum_as_ceiling(world: World, *, of_returns: bool = False) -> cs.Potential:
    """Return the tightest ceiling there is: bets on optimal actions win nothing in the mean, and lose nothing."""
    values, reward = world.model.optimum(world.horizon).values, world.model.reward
    bounds: Any = {"reward_min": float(reward.min()), "reward_max": float(reward.max()), "kind": "ceiling"}
    if of_returns:
        return cs.Potential(values[0], world, **bounds, episode_steps=world.horizon)
    return cs.Potential(values, world, **bounds)


def cases(part: str) -> Iterator[tuple[World, cs.Ceilings | cs.Potential, int]]:
    """Give worlds, what the agent is told of them, and seeds."""
    if part in HOLD:
        worlds = [cs.load_world(name) for name in WORLDS] + [costly_world(seed) for seed in range(len(WORLDS) * 9)]
        for world in worlds:
            told: Any = ceilings_of(world, world)
            if part != HOLD[0]:
                told = optimum_as_ceiling(world, of_returns=part == HOLD[2])
            for run in range(RUNS // len(worlds)):
                yield world, told, run
    elif part in WRONG[:2]:
        for run in range(200):
            world = costly_world(run, part.split(",")[0])
            yield world, ceilings_of(world, world, confounding=1.0, support="any"), run
    else:
        for name in ("windy-empty", "lavacross-easy"):  # elsewhere coins pay for ever without wind
            logged = cs.load_world(name)
            online = cs.load_world(name, wind=CALM if part == WRONG[2] else (0.2, 0.2, 0.0, 0.0, 0.6))
            told = ceilings_of(logged, online)
            for run in range(100):
                yield online, told, run


def run_part(part: str) -> dict[str, Any]:
    """Return how many runs had an alarm, when, and what they cost beside runs without monitor and without ceilings."""
    alarms, too_low, regret = [], [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for world, told, seed in cases(part):
            stepwise = isinstance(told, cs.Potential) and told.step_indexed
            options: Any = {"steps": STEPS, "seed": seed, "step_indexed": stepwise, "learner": "q-ucb-shaping"}
            run = cs.train(world, told, **options)
            alarms.append(run.alarm or np.inf)
            best = world.model.optimum(world.horizon).values
            ceiling = told.values if told.values.ndim == 2 else told.values[None]
            short = (best[: len(ceiling)] - ceiling)[:, ~world.model.terminal]
            too_low.append(float(short.max()) / float(np.ptp(best)))
            if part in WRONG:
                others = (replace(told, reward_min=None), None)
                runs = [run, *(cs.train(world, other, **options) for other in others)]
                regret.append([one.step_regret[-1] for one in runs])
    wrong = np.array(too_low) > 1e-6
    figures: dict[str, Any] = {"runs": len(alarms), "steps": STEPS, "alarms": int(np.isfinite(alarms).sum())}
    if part in WRONG:
        delays = np.array(alarms)[wrong]
        found = np.sort(delays[np.isfinite(delays)])
        figures |= {
            "runs with ceilings below the optimum": int(wrong.sum()),
            "alarms among them": len(found),
            "alarms among the others": figures["alarms"] - len(found),
            "delay, quartiles of the alarms": np.quantile(found, [0.25, 0.5, 0.75]).round().tolist(),
            "how far below, mean share of the range of values": round(float(np.array(too_low)[wrong].mean()), 3),
            "regret": dict(
                zip(("monitored", "not monitored", "zero potential"), np.mean(regret, axis=0).round(1), strict=True)
            ),
        }
    return figures


def as_promised(parts: dict[str, dict[str, Any]]) -> bool:
    """Whether false alarms are rare, and ceilings that are too low are mostly found."""
    rare = all(parts[part]["alarms"] <= 0.05 * parts[part]["runs"] for part in HOLD)
    wrong = [parts[part] for part in WRONG[:2]]
    return rare and all(one["alarms among them"] > one["runs with ceilings below the optimum"] / 2 for one in wrong)
