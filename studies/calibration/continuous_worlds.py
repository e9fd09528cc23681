"""Logs for the tests of `inspect_continuous`: small ones, of worlds in which a hidden cause lasts, or does not.

`lasting` is the share of steps in which the hidden cause is the one that was drawn as the episode began; in the others
it is drawn afresh. With 0 nothing lasts.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

import studies.worlds
from causal_shaping.data.transitions import Transitions
from causal_shaping.worlds.continuous import ContinuousWorld, log_table
from causal_shaping.worlds.dynamics import SeeingRule, pick_rows

EPISODES, STEPS = 100, 20
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "windy-field": ("windy-field", {}),
    "windy-field, maze": ("windy-field", {"map": "lavacross-maze"}),
    "windy-field, all winds": ("windy-field", {"map": "windy-empty", "wind": (0.2, 0.2, 0.2, 0.2, 0.2)}),
    "cart-pole": ("cart-pole", {"horizon": STEPS}),
    "mountain-car": ("mountain-car", {"horizon": STEPS}),
}


def load(name: str) -> ContinuousWorld:
    """Return one of the worlds."""
    kind, options = WORLDS[name]
    return studies.worlds.load(kind, **options)


def world_logs(world: ContinuousWorld, rule: SeeingRule | str, seed: int, source: str, lasting: float = 0.0) -> Any:
    """Return a table of episodes of a demonstrator."""
    rng, rule = np.random.default_rng([seed, zlib.crc32(source.encode())]), world.demonstrator(rule)
    states, episode = world.start(rng.random((EPISODES, world.start_draws))), np.arange(EPISODES)
    cause, parts = rng.random(EPISODES), []
    for step in range(world.horizon):
        size = len(states)
        draw = np.where(rng.random(size) < lasting, cause[episode], rng.random(size))
        noises = pick_rows(world.noise(states), draw)
        actions = pick_rows(rule(states)[np.arange(size), noises], rng.random(size))
        moved = world.step(states, actions, noises, rng.random((size, world.step_draws)))
        cut = np.full(size, step + 1 == world.horizon) & ~moved.terminated
        parts.append((episode, np.full(size, step), states, actions, *moved, cut))
        states, episode = moved.states[~moved.terminated], episode[~moved.terminated]
    return _table(source, world.columns, parts)


def blind_rule(world: ContinuousWorld, seed: int) -> SeeingRule:
    """Return a random demonstrator whose actions depend on the state, and not on the hidden noise."""
    rng = np.random.default_rng([seed, 5])
    centre = (world.low + world.high) / 2
    wish = 4 * rng.normal(size=(len(world.columns), len(world.actions))) / (world.high - world.low)[:, None]

    def rule(states: Any) -> Any:
        odds = np.exp((states - centre) @ wish)
        return np.repeat((odds / odds.sum(axis=1, keepdims=True))[:, None], len(world.noises), axis=1)

    return rule


def linear_logs(
    coordinates: int, seed: int, source: str = "one", *, lasting: float = 0.0, sees: float = 1.0, taste: float = 1.0
) -> Any:
    """Return a table of episodes of a linear world with Gaussian noise, a random one by coordinates and seed.

    The hidden cause moves all coordinates and pays. The more the demonstrator `sees` of it, the more it moves actions;
    so does the last coordinate, by `taste`. An episode ends where the first coordinate is large.
    """
    of_world = np.random.default_rng([seed, coordinates])
    drift = 0.9 * np.linalg.qr(of_world.normal(size=(coordinates, coordinates)))[0]
    push, moved_by = of_world.normal(size=coordinates), of_world.normal(size=coordinates) / 2
    rng = np.random.default_rng([seed, zlib.crc32(source.encode())])
    state, episode, cause = rng.normal(size=(EPISODES, coordinates)), np.arange(EPISODES), rng.normal(size=EPISODES)
    parts = []
    for step in range(STEPS):
        size = len(state)
        hidden = np.where(rng.random(size) < lasting, cause[episode], rng.normal(size=size))
        action = (sees * hidden + taste * state[:, -1] + rng.logistic(size=size) > 0).astype(int)
        after = state @ drift.T + push * (action[:, None] - 0.5) + moved_by * hidden[:, None]
        after += 0.5 * rng.normal(size=after.shape)
        ended = np.abs(after[:, 0]) > 4
        reward = hidden - 0.1 * np.abs(state).sum(axis=1)
        parts.append((episode, np.full(size, step), state, action, after, reward, ended, (step == STEPS - 1) & ~ended))
        state, episode = after[~ended], episode[~ended]
    return _table(source, tuple(f"x{i}" for i in range(coordinates)), parts)


def _table(source: str, columns: tuple[str, ...], parts: list[tuple[Any, ...]]) -> Any:
    names = ("episode", "step", "state", "action", "next_state", "reward", "terminated", "truncated")
    order = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
    held = {name: np.concatenate(column)[order] for name, column in zip(names, zip(*parts, strict=True), strict=True)}
    return log_table(source, columns, held)


def transitions(*tables: Any) -> Transitions:
    """Return tables of logs as rows of vectors, without engines in between."""
    names = tuple(name.removeprefix("next_") for name in tables[0].column_names if name.startswith("next_"))
    held = {name: np.concatenate([table[name].to_numpy() for table in tables]) for name in tables[0].column_names}
    sizes = [table.num_rows for table in tables]
    source = np.repeat(np.arange(len(tables)), sizes)
    episode = np.unique(np.stack([source, held["episode"]]), axis=1, return_inverse=True)[1].ravel()
    here, there = (np.stack([held[prefix + name] for name in names], axis=1) for prefix in ("", "next_"))
    return Transitions(
        sources=tuple(table["source"][0].as_py() for table in tables),
        actions=tuple(range(int(held["action"].max()) + 1)),
        columns=names,
        shape=(len(names),),
        observations=np.concatenate([here, there]).astype(np.float32),
        state=np.arange(len(here)),
        next_state=np.arange(len(here), 2 * len(here)),
        action=held["action"].astype(np.int32),
        reward=held["reward"],
        terminated=held["terminated"],
        truncated=held["truncated"],
        source=source.astype(np.int16),
        episode=episode,
        step=held["step"].astype(np.int32),
    )
