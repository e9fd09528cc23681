"""Potentials from behaviour values: the mean return of the demonstrators, used as if an agent could earn it, too.

Confounding biases these values in either direction: a demonstrator who sees the noise earns more than any agent that
does not, and a bad one makes good states look bad. They are baselines of the paper's study.

- `behaviour_values`: for one source, the mean return from each state on.
- `behaviour_potential`: their minimum, maximum or mean over sources, as a potential.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.logs import Logs
from causal_shaping.data.potential import Potential
from causal_shaping.data.space import Space


def merge_spaces(logs: Sequence[Logs]) -> tuple[Sequence[Logs], Space]:
    """Return the sources, and the space that holds the labels of all of them."""
    space = logs[0].space
    for one in logs[1:]:
        space = space.merge(one.space)
    return logs, space


def behaviour_values(logs: Logs) -> FloatArray:
    """Return the mean return from each state to the end of its episode: float64 [states], NaN if it was never visited.

    Every-visit Monte Carlo, undiscounted; the return of a truncated episode is what it earned until then.

    Examples:
        >>> from causal_shaping import load_world
        >>> world = load_world("walking-robot")
        >>> behaviour_values(world.collect("competent", 3000)).round(1)[world.state_at(9, 0)]
        np.float64(1.0)
    """
    total = np.cumsum(logs.reward)
    before = total - logs.reward
    last = np.append(logs.episode[1:] != logs.episode[:-1], True)  # the last row of each episode
    end = total[last][np.cumsum(last) - last]  # the sum up to the end of the row's own episode
    states = len(logs.space.states)
    visits = np.bincount(logs.state, minlength=states)
    earned = np.bincount(logs.state, end - before, minlength=states)
    return np.where(visits > 0, earned / np.maximum(visits, 1), np.nan)


def behaviour_potential(logs: Sequence[Logs], *, combine: str) -> Potential:
    """Return behaviour values as a potential, combined over the sources that visited a state; 0 if none did.

    Args:
        logs: the sources; their spaces are merged.
        combine: "min", "max" or "avg".
    """
    logs, space = merge_spaces(logs)
    table = np.full((len(logs), len(space.states)), np.nan)
    for row, one in zip(table, logs, strict=True):
        row[space.positions(one.space)[0]] = behaviour_values(one)
    known = ~np.isnan(table)
    low, high = np.where(known, table, np.inf).min(axis=0), np.where(known, table, -np.inf).max(axis=0)
    mean = np.where(known, table, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    values = np.where(known.any(axis=0), {"min": low, "max": high, "avg": mean}[combine], 0.0)
    sources = ", ".join(one.source for one in logs)
    return Potential(
        values,
        space,
        unseen=0.0,
        origin=f"behaviour values ({combine}) of {sources}",
        assumptions=("The demonstrators saw no more than the log holds, and acted optimally.",),
    )
