"""From rules over labels to arrays: the tables of a world, and those of its demonstrators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import UnknownNameError
from causal_shaping.models.cmdp import TabularCMDP

Step = Callable[[Any, str, str], tuple[Any, float]]
"""A world's rule: (state label, action, noise) to (next state label, reward)."""

Rule = Callable[[Any, str], str | Sequence[str] | Mapping[str, float]]
"""A demonstrator's rule: (state label, noise) to an action, several equally likely ones, or a
distribution."""


def tabulate(
    states: Sequence[Any],
    actions: Sequence[str],
    noises: Sequence[str],
    columns: Sequence[str],
    *,
    step: Step,
    noise: Callable[[Any], Sequence[float]],
    terminal: Callable[[Any], bool],
    start: Iterable[Any],
) -> TabularCMDP:
    """Return the CMDP of a rule.

    Args:
        states: the labels of all states that the rule can lead to.
        actions: the names of the actions.
        noises: the names of the noise's values.
        columns: the names of the parts of a label.
        step: the rule; it is not asked in terminal states.
        noise: the distribution over `noises` in a state.
        terminal: whether a state ends an episode.
        start: the first states of episodes, all equally likely.
    """
    position = {state: i for i, state in enumerate(states)}
    shape = (len(states), len(actions), len(noises))
    # A terminal state leads to itself and pays 0; its noise, which does nothing, is the last value.
    next_state = np.broadcast_to(np.arange(len(states))[:, None, None], shape).copy()
    reward, chance, starts = np.zeros(shape), np.zeros((shape[0], shape[2])), np.zeros(shape[0])
    chance[:, -1] = 1.0
    ends = np.array([terminal(state) for state in states])
    for s in np.flatnonzero(~ends).tolist():
        chance[s] = noise(states[s])
        for x, u in np.ndindex(shape[1:]):
            after, reward[s, x, u] = step(states[s], actions[x], noises[u])
            next_state[s, x, u] = position[after]
    starts[[position[state] for state in start]] = 1.0
    starts /= starts.sum()
    return TabularCMDP(next_state, reward, chance, ends, starts, states, actions, columns)


def demonstrator(
    rule: Rule,
    states: Sequence[Any],
    actions: Sequence[str],
    noises: Sequence[str],
    random: float = 0.0,
) -> FloatArray:
    """Return a demonstrator's table beta[s, u, x]: its rule, or at random any action."""
    table = np.full((len(states), len(noises), len(actions)), random / len(actions))
    for s, u in np.ndindex(table.shape[:2]):
        choice = rule(states[s], noises[u])
        where = f"In state {states[s]!r} and noise {noises[u]!r} the demonstrator takes"
        if isinstance(choice, str):
            choice = (choice,)
        if not choice:
            raise UnknownNameError(f"{where} no action.")
        if not isinstance(choice, Mapping):
            choice = dict.fromkeys(choice, 1 / len(choice))
        for action, probability in choice.items():
            if action not in actions:
                known = ", ".join(actions)
                raise UnknownNameError(f"{where} {action!r}, which is not one of {known}.")
            table[s, u, actions.index(action)] += (1 - random) * probability
    return table
