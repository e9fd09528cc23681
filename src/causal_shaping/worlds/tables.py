"""The one builder: from rules over labels to the tables of a CMDP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import UnknownNameError
from causal_shaping.models.cmdp import TabularCMDP

Step = Callable[[Any, str, str], tuple[Any, float]]
"""A world's rule: (state label, action, noise) to (next state label, reward)."""


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
    """Return the CMDP of a rule, `step`, which is not asked in terminal states and leads to none but `states`.

    `columns` name the parts of a state label, `noise` gives the distribution over `noises` in a state, and all states
    of `start` are equally likely.
    """
    position = {state: i for i, state in enumerate(states)}
    shape = (len(states), len(actions), len(noises))
    ends = np.array([terminal(state) for state in states])
    next_state = np.broadcast_to(np.arange(len(states))[:, None, None], shape).copy()
    reward = np.zeros(shape)
    for s, x, u in np.ndindex(shape):
        if not ends[s]:
            after, reward[s, x, u] = step(states[s], actions[x], noises[u])
            next_state[s, x, u] = position[after]
    idle = [0.0] * (len(noises) - 1) + [1.0]  # the noise of terminal states, where it does nothing
    starts = np.zeros(len(states))
    starts[[position[state] for state in start]] = 1.0
    shares = np.array([idle if end else noise(state) for state, end in zip(states, ends, strict=True)])
    return TabularCMDP(next_state, reward, shares, ends, starts / starts.sum(), states, actions, columns)


Rule = Callable[[Any, str], str | Sequence[str] | Mapping[str, float]]
"""A demonstrator's rule: (state label, noise) to an action, or several equally likely ones, or a distribution."""


def demonstrator(
    rule: Rule, states: Sequence[Any], actions: Sequence[str], noises: Sequence[str], random: float = 0.0
) -> FloatArray:
    """Return a demonstrator's table beta[s, u, x]: the rule, or with probability `random` any action."""
    table = np.full((len(states), len(noises), len(actions)), random / len(actions))
    for s, state in enumerate(states):
        for u, noise in enumerate(noises):
            choice = rule(state, noise)
            if isinstance(choice, str):
                choice = (choice,)
            if not choice:
                raise UnknownNameError(f"In state {state!r} and noise {noise!r} the demonstrator takes no action.")
            if not isinstance(choice, Mapping):
                choice = dict.fromkeys(choice, 1 / len(choice))
            for action, probability in choice.items():
                if action not in actions:
                    raise UnknownNameError(
                        f"In state {state!r} and noise {noise!r} the demonstrator takes {action!r}, which is not one "
                        f"of {', '.join(actions)}."
                    )
                table[s, u, actions.index(action)] += (1 - random) * probability
    return table
