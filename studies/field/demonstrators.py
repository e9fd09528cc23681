"""Demonstrators of a world: how good they are, and how far what they see of the hidden noise moves them.

- `demonstrators`: two sources by skill and confounding.
- `tilted`: a demonstrator who is moved by a hidden sign as strongly as a Gamma allows.
- `gamma_of`, `odds_ratio`: the confounding of a demonstrator, exact.
- `trial`: acting at random.

Letters: s, x, u are state, action and hidden noise; beta[s, u, x] is a demonstrator.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.models.cmdp import TabularCMDP, Values

SKILLS: Mapping[str, tuple[float, float]] = {"good": (1.5, 1.5), "bad": (-1.0, -1.0), "mixed": (1.5, -1.0)}
"""How strongly the habits of the first and the second source lean to the better actions of a state."""

CONFOUNDING: Mapping[str, float] = {"none": 0.0, "mild": 0.5, "strong": 2.0, "hostile": 4.0}
"""How strongly sources lean on the noise: to what is good in it, and as much by whim; a hostile one against the truth.

A hostile source shows the best action in noise that is bad for it, and any other in noise that is good for it."""

DISCOUNT = 0.97
"""Demonstrators look ahead with this discount, so that their tables do not depend on the step."""

TASTE = 0.5
"""The spread of habits that have no reason."""

AT_RANDOM = 0.05
"""The share of its steps in which every demonstrator acts at random, whatever the noise."""


def demonstrators(model: TabularCMDP, skill: str, confounding: str, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Return two sources as tables beta[s, u, x].

    In state s under noise u the log-odds of x are skill * (Q*(s, x) in standard deviations over the actions) + a taste
    for x + confounding * (z(s, u, x) + whim) / sqrt(2), where z is how good the noise is for x, in standard deviations
    over noise.
    """
    best, exists = model.optimum(discount=DISCOUNT), model.space.is_admissible
    merit, suits = merits(best.q_values, exists), _suits(model, best)
    found = {}
    for source, lean in zip(("first", "second"), SKILLS[skill], strict=True):
        habit = lean * merit + TASTE * rng.normal(size=merit.shape)
        whim = rng.normal(size=suits.shape)
        if confounding == "hostile":
            is_best = np.arange(merit.shape[1]) == np.where(exists, merit, -np.inf).argmax(axis=1)[:, None]
            moved = np.where(is_best, -1.0, 1.0)[:, None, :] * suits
        else:
            moved = (suits + whim) / np.sqrt(2)
        found[source] = _stirred(habit[:, None, :] + CONFOUNDING[confounding] * moved, exists)
    return found


def trial(model: TabularCMDP) -> FloatArray:
    """Return a demonstrator who takes all actions that exist with equal chances, whatever the noise."""
    exists = model.space.is_admissible
    return _stirred(np.zeros((*model.noise.shape, exists.shape[1])), exists)


def tilted(habit: FloatArray, direction: FloatArray, gamma: float) -> FloatArray:
    """Return a demonstrator who is moved by a hidden sign of two equally likely values: beta[s, sign, x].

    In each state beta is proportional to habit * exp(strength * direction), with the largest strength for which the
    odds of no action, given the sign, differ from those without it by more than a factor of `gamma`.

    Args:
        habit: [states, actions], what it does on average; 0 where an action does not exist.
        direction: [states, 2, actions], where the sign moves it.
        gamma: the confounding, from 1.
    """
    low, high = np.zeros(len(habit)), np.full(len(habit), 60.0)

    def at(strength: FloatArray) -> FloatArray:
        weight = habit[:, None, :] * np.exp(strength[:, None, None] * direction)
        return np.asarray(weight / weight.sum(axis=-1, keepdims=True))

    for _ in range(60):
        middle = (low + high) / 2
        fits = odds_ratio(at(middle), np.full((len(habit), 2), 0.5)).max(axis=(1, 2)) <= gamma
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return at(low)


def gamma_of(model: TabularCMDP, beta: FloatArray) -> float:
    """Return the smallest Gamma that a demonstrator fits: how far the noise moves the odds of an action at most."""
    alive = ~model.terminal
    return float(odds_ratio(beta[alive], model.noise[alive]).max())


def odds_ratio(beta: FloatArray, noise: FloatArray) -> FloatArray:
    """Return by what factor noise changes the odds of an action, either way: [s, u, x]; 1 where nothing can change."""
    share = np.einsum("su,sux->sx", noise, beta)[:, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = beta / (1 - beta) * ((1 - share) / share)
        either = np.maximum(ratio, 1 / ratio)
    fixed = (noise[:, :, None] == 0) | (share <= 0) | (share >= 1 - 1e-12)
    return np.where(fixed, 1.0, either)


def merits(q_values: FloatArray, exists: BoolArray) -> FloatArray:
    """Return Q-values in standard deviations over the actions that exist in a state, from their mean: [s, x]."""
    q_values = np.where(exists, q_values, np.nan)
    away = q_values - np.nanmean(q_values, axis=1, keepdims=True)
    spread = np.nanstd(q_values, axis=1, keepdims=True)
    return np.where(exists & (spread > 1e-12), away / np.maximum(spread, 1e-12), 0.0)


def _suits(model: TabularCMDP, best: Values) -> FloatArray:
    """Return how good each noise is for each action: its worth less the mean, in standard deviations, [s, u, x]."""
    worth = (model.reward + DISCOUNT * best.values[model.next_state]).transpose(0, 2, 1)
    away = worth - np.einsum("su,sux->sx", model.noise, worth)[:, None, :]
    spread = np.sqrt(np.einsum("su,sux->sx", model.noise, away**2))[:, None, :]
    return np.asarray(np.divide(away, spread, out=np.zeros_like(away), where=spread > 1e-12))


def _stirred(log_odds: FloatArray, exists: BoolArray) -> FloatArray:
    """Return chances from log-odds, mixed with acting at random among the actions that exist."""
    log_odds = np.where(exists[:, None, :], log_odds, -np.inf)
    weight = np.exp(log_odds - log_odds.max(axis=-1, keepdims=True))
    uniform = exists / exists.sum(axis=1, keepdims=True)
    beta = (1 - AT_RANDOM) * weight / weight.sum(axis=-1, keepdims=True) + AT_RANDOM * uniform[:, None, :]
    return np.asarray(beta / beta.sum(axis=-1, keepdims=True))
