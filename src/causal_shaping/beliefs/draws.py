"""Worlds drawn from a posterior: their optimal values, and their tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from causal_shaping.beliefs._kernels import Drawn, Memory, draw, plan
from causal_shaping.beliefs.model import Model, room_for
from causal_shaping.data.arrays import FloatArray, begins
from causal_shaping.data.space import Label, Space
from causal_shaping.models.cmdp import TabularCMDP

BURN_IN = 50
"""Draws to leave out where trials take part: each draw begins where the last one ended."""


class Sample(NamedTuple):
    """A world that was drawn, in arrays that the next draw writes to."""

    drawn: Drawn
    memory: Memory
    q_values: FloatArray  # [horizon, states, actions]; -inf for actions that are not admissible


def each_draw(model: Model, n: int, seed: int) -> Iterator[Sample]:
    """Yield worlds drawn from what is believed, planned in."""
    rng, memory = np.random.default_rng(seed), model.memory(0)
    drawn, admissible = room_for(model, memory), model.space.is_admissible
    q_values = np.zeros((model.settings.horizon, *admissible.shape))
    skipped = BURN_IN if model.trials else 0
    for i in range(skipped + n):
        draw(rng, model.shape, model.guess, memory, admissible, drawn)
        if i >= skipped:
            plan(model.shape, memory, drawn, admissible, model.terminal, q_values)
            yield Sample(drawn, memory, q_values)


def table_of(model: Model, sample: Sample, start: FloatArray) -> TabularCMDP:
    """Return a world that was drawn as tables.

    Noise is one number between 0 and 1 for all actions of a state, cut where the outcome of some action changes.
    """
    shape, space = model.shape, model.space
    cell, after, paid, chance = _outcomes(model, sample)
    ends = bool((after == shape.states).any())
    terminal, states = model.terminal, space.states
    if ends and not terminal.any():
        terminal, states, start = np.append(terminal, True), (*states, _end_label(space)), np.append(start, 0.0)
    if ends:
        after = np.where(after == shape.states, np.flatnonzero(terminal)[0], after)
    first = np.searchsorted(cell, np.arange(model.cells + 1))
    cuts, cumulated = [], np.zeros(len(chance))
    for place in range(model.places):
        ends_of = [np.array([1.0])]
        for i in range(place * shape.actions, (place + 1) * shape.actions):
            here = slice(first[i], first[i + 1])
            total = np.cumsum(chance[here])
            if len(total):
                cumulated[here] = total / total[-1]
                ends_of.append(cumulated[here])
        cuts.append(np.unique(np.concatenate(ends_of)))
    noises = max(map(len, cuts))
    tables = (shape.steps, len(states), shape.actions, noises)
    itself = np.arange(len(states), dtype=np.int32)[:, None, None]
    next_state, reward = np.broadcast_to(itself, tables).copy(), np.zeros(tables)
    noise = np.zeros((shape.steps, len(states), noises))
    noise[..., 0] = 1.0
    for place, cut in enumerate(cuts):
        t, s = divmod(place, shape.states)
        if terminal[s]:
            continue
        size = len(cut)
        noise[t, s, :size] = np.diff(cut, prepend=0.0)
        middle = cut - noise[t, s, :size] / 2
        for x in range(shape.actions):
            here = slice(first[place * shape.actions + x], first[place * shape.actions + x + 1])
            if here.stop > here.start:
                which = here.start + np.searchsorted(cumulated[here], middle)
                next_state[t, s, x, :size], reward[t, s, x, :size] = after[which], paid[which]
    if shape.steps == 1:
        next_state, reward, noise = next_state[0], reward[0], noise[0]
    held: Any = None
    if space.admissible:
        held = np.ones((len(states), shape.actions), dtype=bool)
        held[: shape.states] = space.is_admissible
    return TabularCMDP(
        next_state, reward, noise, terminal, start, states, space.actions, space.columns, admissible=held
    )


def _outcomes(model: Model, sample: Sample) -> tuple[Any, Any, Any, Any]:
    """Return cell, next state (the number of states for an end), reward and chance of each outcome, by cell."""
    drawn = sample.drawn
    used = int(drawn.first[-1])
    cell = np.repeat(np.arange(model.cells), np.diff(drawn.first))
    after, paid, chance = drawn.after[:used].astype(np.int64), drawn.paid[:used], drawn.chance[:used]
    # What an unknown outcome pays is the rest of the mean; it leads to any state that was met.
    unknown, places = np.flatnonzero(drawn.unknown), _places(model, sample.memory)
    rest = drawn.reward - np.bincount(cell, chance * paid, minlength=model.cells)
    cell = np.append(cell, np.repeat(unknown, len(places)))
    after = np.append(after, np.tile(places, len(unknown)))
    paid = np.append(paid, np.repeat(rest[unknown] / drawn.unknown[unknown], len(places)))
    chance = np.append(chance, np.repeat(drawn.unknown[unknown] / len(places), len(places)))
    order = np.lexsort((paid, after, cell))
    columns: Any = [column[order] for column in (cell, after, paid)]
    new = np.flatnonzero(begins(*columns))
    cell, after, paid = (column[new] for column in columns)
    return cell, after, paid, np.add.reduceat(chance[order], new)


def _places(model: Model, memory: Memory) -> Any:
    """Return where an unknown outcome may lead: the states that were met, and an end (the number of states)."""
    met = memory.met & ~model.terminal
    places = np.flatnonzero(met if met.any() else ~model.terminal)
    return np.append(places, model.shape.states) if memory.sizes[3] else places


def _end_label(space: Space) -> Label:
    """Return a label for the end of an episode that no state has."""
    name, width = "end", len(space.columns)
    while (label := name if width == 1 else (name,) * width) in space.states:
        name += "'"
    return label
