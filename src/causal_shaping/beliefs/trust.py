"""How far each source is trusted, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from causal_shaping.beliefs._kernels import Memory, belief, chance_of_trust
from causal_shaping.beliefs.model import Model
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, frozen
from causal_shaping.data.result import DataFrame, PlainResult
from causal_shaping.data.space import Space

DOUBTED = 0.5
"""A source is doubted in a state if the chance that it is right there is below this."""

NAMED_STATES = 3
"""So many of the states in which a source is doubted most are named in a summary."""


@dataclass(frozen=True, eq=False, repr=False)
class Trust(PlainResult):
    """How far each source is trusted: whether actions do what they did in its logs.

    A source that nothing is known of, except that it may have seen anything, is trusted as the prior says. Online
    steps, trials and contradictions between the logs change that. Sources that were declared unconfounded are not
    listed: they are taken at their word.

    Attributes:
        space: the states and actions.
        sources: the names of the confounded sources.
        everywhere: float64 [sources], the probability that a source is right in all states.
        in_part: float64 [sources], the probability that it is right about some actions in some states and misleads
            elsewhere, or about all actions but one, and that no other source is the one to follow.
        together: the probability that not one of them, but their mean is right, everywhere or in part.
        nobody: the probability that none of this holds: what they suggest beyond what they prove is ignored.
        by_state: float64 [sources, states], or [sources, steps, states] for counts by step: the probability that a
            source is right in a state; NaN where it has no data.
        refuted: int32 [sources], of how many actions in states other sources prove that it misleads.
    """

    space: Space
    sources: tuple[str, ...]
    everywhere: FloatArray
    in_part: FloatArray
    together: float
    nobody: float
    by_state: FloatArray
    refuted: IntArray

    def __post_init__(self) -> None:
        for name in ("everywhere", "in_part", "by_state"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64, name))
        object.__setattr__(self, "refuted", frozen(self.refuted, np.int32, "refuted"))

    def __repr__(self) -> str:
        trusted = zip(self.sources, self.everywhere + self.in_part, strict=True)
        each = ", ".join(f"{name} {p:.2f}" for name, p in trusted)
        return f"Trust({each or 'no confounded source'}; nobody {self.nobody:.2f})"

    def summary(self) -> str:
        """Return how far each source is trusted, and where it misleads, in words."""
        if not self.sources:
            return "There is no confounded source to trust or doubt."
        lines = []
        for i, name in enumerate(self.sources):
            line = f"{name}: right everywhere with a probability of {_chance(self.everywhere[i])}, "
            line += f"right in part only {_chance(self.in_part[i])}"
            if self.refuted[i]:
                line += f"; of {self.refuted[i]:,} actions in states other sources prove that it misleads"
            lines.append(f"{line}.{self._doubts(i)}")
        if self.together > 0:
            lines.append(f"Their mean is right, everywhere or in part: {_chance(self.together)}.")
        lines.append(f"None of this holds: {_chance(self.nobody)}.")
        return "\n".join(lines)

    def _doubts(self, source: int) -> str:
        """Return the states in which a source that is trusted elsewhere misleads."""
        by_state = self.by_state[source].reshape(-1, len(self.space.states))
        lowest = np.where(np.isnan(by_state), np.inf, by_state).min(axis=0)
        most = np.where(np.isnan(by_state), -np.inf, by_state).max(initial=-np.inf)
        doubted = [int(s) for s in np.argsort(lowest, kind="stable") if lowest[s] < DOUBTED * most]
        if not doubted:
            return ""
        named = ", ".join(f"{self.space.states[s]!r} ({_chance(lowest[s])})" for s in doubted[:NAMED_STATES])
        more = f" and {len(doubted) - NAMED_STATES:,} more" if len(doubted) > NAMED_STATES else ""
        return f" It misleads most in {named}{more}."

    def to_pandas(self) -> DataFrame:
        """Return a row per source (and step) and state: `trust`, the probability that it is right there."""
        import pandas as pd

        frames = []
        for name, values in zip(self.sources, self.by_state, strict=True):
            frame = pd.DataFrame(self.space.columns_by_state({"trust": values}))
            frame.insert(0, "source", name)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"source": [], "trust": []})

    def as_plain(self) -> dict[str, Any]:
        """Return everything but the space as plain values, for JSON."""
        return {
            "sources": list(self.sources),
            "everywhere": self.everywhere.tolist(),
            "in_part": self.in_part.tolist(),
            "together": self.together,
            "nobody": self.nobody,
            "by_state": [None if np.isnan(p) else p for p in self.by_state.ravel().tolist()],
            "shape": list(self.by_state.shape),
            "refuted": self.refuted.tolist(),
        }

    @classmethod
    def restore(cls, space: Space, held: Mapping[str, Any]) -> Self:
        """Return the trust that `as_plain` gave."""
        plain = {name: held[name] for name in ("everywhere", "in_part", "together", "nobody", "refuted")}
        by_state = np.array(held["by_state"], dtype=np.float64).reshape(held["shape"])  # None is NaN
        return cls(space, tuple(held["sources"]), **plain, by_state=by_state)


def _chance(p: float) -> str:
    """Return a probability in words that do not pretend to be exact."""
    return f"{p:.2f}" if p >= 0.005 else "less than 0.005"


def trust_of(model: Model, memory: Memory) -> Trust:
    """Return how far each source is trusted, after what an agent has seen."""
    guess, sources, shape = model.guess, len(model.sources), model.shape
    held, chance = guess.hypotheses, belief(guess, memory)
    everywhere, in_part, together = np.zeros(sources), np.zeros(sources), 0.0
    has: BoolArray = np.greater(guess.strength, 0.0).reshape(model.places, shape.actions, -1)
    by_state = np.zeros((sources, model.places))
    sure: dict[tuple[int, float], FloatArray] = {}  # many hypotheses share a doubt
    for h in range(1, len(chance)):
        c = int(held.component[h])
        if c >= sources:  # the pool
            together += float(chance[h])
            continue
        (everywhere if held.aside[h] < 0 and not held.blunt[h] else in_part)[c] += chance[h]
        key = c, float(held.doubt[h])
        if key not in sure:
            sure[key] = np.array([chance_of_trust(one, key[1]) for one in memory.ratio[:, c]])
        right = sure[key].copy()
        right[np.arange(len(right)) % shape.actions == held.aside[h]] = 0.0
        tried = has[..., c]  # the mean over the actions of which it has data
        right = (right.reshape(-1, shape.actions) * tried).sum(axis=1) / np.maximum(tried.sum(axis=1), 1)
        by_state[c] += chance[h] * right
    by_state[np.logical_not(np.any(has, axis=1))[:, :sources].T] = np.nan
    layers = (shape.steps, shape.states) if shape.steps > 1 else (shape.states,)
    return Trust(
        model.space,
        model.sources,
        everywhere,
        in_part,
        together,
        float(chance[0]),
        by_state.reshape(sources, *layers),
        model.refuted[:, :sources].sum(axis=0).astype(np.int32),
    )
