"""A posterior in words: what it rests on, whom it trusts, what it says."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_shaping.beliefs.model import ENOUGH_VISITS, Model
from causal_shaping.bounds import words as bounds_words
from causal_shaping.bounds.settings import CEILING, OBSERVED, Settings
from causal_shaping.data.counts import Counts

if TYPE_CHECKING:
    from causal_shaping.beliefs.inference import Posterior

SURE = 0.95
"""An action that is best with this probability is called likely to be best."""


def assumptions(counts: Counts, settings: Settings, model: Model) -> list[str]:
    """Return what is taken to be true, as for ceilings, and what is only believed, a sentence each."""
    known: Any = SimpleNamespace(
        **vars(settings) | {"confidence": None},
        SIDE=CEILING,
        space=counts.space,
        step_indexed=counts.step_indexed,
        no_other_states=False,
        inferred_terminal=int((model.terminal & ~counts.space.is_terminal).sum()),
    )
    result = bounds_words.assumptions(known)
    if settings.confidence is not None:
        result.append(
            f"Proven masses are lower limits that all hold at once with a probability of {settings.confidence:.4g}; "
            "what lies between them and the truth counts as free."
        )
    if model.sources:
        result.append(
            "Believed, and proven by nothing: mass that no source proves goes where a source that is trusted saw it "
            "go, or anywhere that the support allows. Before anything else is known, it is as likely as not that no "
            "source can be trusted."
        )
    else:
        result.append("Believed, and proven by nothing: before any visit, all outcomes that are possible are alike.")
    if settings.confidence is None and settings.support in OBSERVED:
        result.append(
            f"A state with fewer than {math.ceil(ENOUGH_VISITS)} visits may not have shown all that can follow it: "
            "there, anything may follow."
        )
    possible = counts.space.is_admissible & ~model.terminal[:, None]
    if (model.unknown.reshape(-1, *possible.shape) & possible).any():
        result.append(
            "Where anything may follow, an outcome that nobody has seen is as likely as any that was seen; it pays any "
            "of the rewards that were seen, or the most that a step can, and leads to any state that was met, or to an "
            "end, if one was seen."
        )
    return result


def summary(belief: Posterior) -> str:
    """Return what is believed, whom it trusts, what contradicts it, and the assumptions."""
    settings, terminal = belief.settings, belief.model.terminal
    values, acted = belief.mean.values[0], np.zeros(len(belief.space.states), dtype=bool)
    acted[belief.counts.state] = True
    shown = values[acted & ~terminal]
    low, high = (belief.quantile(q).values[0][acted & ~terminal] for q in (0.05, 0.95))
    best = np.nan_to_num(belief.probability_optimal[0]).max(axis=-1)[acted & ~terminal]
    sure = "population masses" if belief.counts.population else "masses drawn from what is believed of them"
    if settings.confidence is not None:
        sure = f"lower limits of confidence {settings.confidence:g}"
    lines = [
        f"Posterior of {settings.horizon} steps from {', '.join(belief.counts.sources)}, {belief.draws} draws: the "
        f"value of a state is from {shown.min():.4g} to {shown.max():.4g} on average",
        f"support {settings.support}, {sure}, discount {settings.discount:g}, "
        f"{'steps kept apart' if belief.counts.step_indexed else 'steps pooled'}",
        f"Half of the intervals of 90% are no wider than {np.median(high - low):.4g}; in {(best >= SURE).sum():,} of "
        f"{len(best):,} states in which a source acted some action is best with a probability of {SURE:g} or more (at "
        "the first step).",
        *(f"Doubtful: {caveat}" for caveat in belief.caveats),
        "",
        belief.trust.summary(),
        "",
        "This guarantees nothing: the logs alone prove ceilings (value_ceilings). It assumes:",
    ]
    return "\n".join([*lines, *(f"- {sentence}" for sentence in belief.assumptions)])
