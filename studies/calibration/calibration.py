"""Whether posterior intervals of V* hold as often as they say, in worlds drawn from the prior itself.

A world: in each state, for each source, a table P_i(x, o | s) (how often it takes each action, and what follows),
drawn again where the sources prove more mass than 1; then whom to trust and where; then what actions do: what the
trusted source shows, or the proven mass and a flat guess of the rest. Logs: rows from the tables P_i. Drawn again where
they do not show all outcomes of a state, which an observed support takes for impossible, or no row has some action,
which may then do anything. (That depends on the logs alone, and so does not change what should be believed.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import numpy as np

WORLDS, PER_PART = 200, 50
STATES, OUTCOMES, HORIZON = 4, 3, 5
LEVELS = (0.5, 0.8, 0.9, 0.95)
DRAWS = 400
KINDS: dict[str, dict[str, Any]] = {
    "one source": {"sources": 1, "visits": 100},
    "one source and a trial": {"sources": 1, "visits": 100, "trial": 10},
    "two sources": {"sources": 2, "visits": 100},
    "two sources and a trial": {"sources": 2, "visits": 100, "trial": 10},
}
SLACK = 2.5
"""Standard errors by which fewer intervals may hold than they say."""


def calibration_parts() -> list[str]:
    """Return the kinds of logs, in parts."""
    return [f"{kind}; {at}-{at + PER_PART - 1}" for kind in KINDS for at in range(0, WORLDS, PER_PART)]


def tables_of(rng: np.random.Generator, sources: int, actions: int) -> tuple[Any, Any, Any]:
    """Return propensities [i, x], shares [i, x, o] and proven masses [x, o] of a state: one visit's worth of prior."""
    while True:
        propensity = rng.dirichlet(np.full(actions, 1 / actions), sources)
        share = rng.dirichlet(np.full(OUTCOMES, 1 / OUTCOMES), (sources, actions))
        proven = (propensity[..., None] * share).max(axis=0)
        if (proven.sum(axis=-1) <= 1).all():
            return propensity, share, proven


def drawn_world(rng: np.random.Generator, sources: int, actions: int) -> tuple[Any, Any, Any]:
    """Return tables P_i(x, o | s) [i, s, x, o], what actions do [s, x, o], and whom to trust, drawn from the prior."""
    from causal_shaping.beliefs.model import hypotheses

    propensity, share, proven = map(
        np.array, zip(*(tables_of(rng, sources, actions) for _ in range(STATES)), strict=True)
    )
    tables = np.swapaxes(propensity[..., None] * share, 0, 1)
    if sources > 1:  # the mean of all is one more guess
        share = np.concatenate([share, share.mean(axis=1, keepdims=True)], axis=1)
    # A guess is refuted in a cell if sources prove more mass of an outcome than it says.
    fits = (share >= proven[:, None] - 1e-12).all(axis=-1)  # [s, i, x]
    held = hypotheses(share.shape[1], actions)
    score = held.prior.copy()
    for h in range(1, len(score)):
        misses = ~fits[:, held.component[h]] & (np.arange(actions) != held.aside[h])
        score[h] += np.log(held.doubt[h]) * misses.sum()
    chance = np.exp(score - score.max())
    h = rng.choice(len(chance), p=chance / chance.sum())
    law = proven + (1 - proven.sum(axis=-1, keepdims=True)) * rng.dirichlet(
        np.full(OUTCOMES, 1 / OUTCOMES), (STATES, actions)
    )
    if h:
        c = held.component[h]
        right = (rng.random((STATES, actions)) >= held.doubt[h]) & fits[:, c] & (np.arange(actions) != held.aside[h])
        law = np.where(right[..., None], share[:, c], law)
    return tables, law, int(h)


def logs_of(rng: np.random.Generator, tables: Any, law: Any, after: Any, paid: Any, visits: int, trial: int) -> Any:
    """Return counts of rows from the tables; None if they do not show all outcomes and actions of some state."""
    import causal_shaping as cs

    sources, states, actions, _ = tables.shape
    flat = tables.reshape(sources, states, -1)
    n = rng.multinomial(visits, flat / flat.sum(axis=-1, keepdims=True)).reshape(tables.shape)
    if trial:
        n = np.concatenate([n, rng.multinomial(trial, law)[None]])
    if (n.sum(axis=(0, 2)) == 0).any() or (n.sum(axis=(0, 3)) == 0).any():
        return None
    source, state, action, outcome = np.nonzero(n)
    chosen, reward, times = after[state, outcome], paid[state, outcome], n[n > 0]
    columns = {"source": source, "step": None, "state": state, "action": action, "next_state": chosen}
    columns |= {"terminated": chosen < 0, "n": times, "reward_sum": reward * times}
    columns |= {"reward_min": reward, "reward_max": reward}
    return cs.Counts.combined(cs.Space(range(states), range(actions)), [f"s{i}" for i in range(len(n))], columns)


def optimum(law: Any, after: Any, paid: Any) -> Any:
    """Return V* of the first step: float64 [states]."""
    values = np.zeros(len(law) + 1)
    for _ in range(HORIZON):
        values[:-1] = np.einsum("sxo,so->sx", law, paid + values[after]).max(axis=-1)
    return values[:-1]


def one_world(kind: str, seed: int) -> dict[str, Any]:
    """Return where V* of a state lies among the draws, and how wide the interval of 90% is."""
    import causal_shaping as cs
    from causal_shaping.beliefs import model

    options = KINDS[kind]
    rng = np.random.default_rng([sorted(KINDS).index(kind), seed])
    actions, counts = int(rng.integers(2, 4)), None
    while counts is None:
        # Outcomes of a state are different; -1 is an end.
        kinds = rng.permuted(np.tile(np.arange(-1, STATES), (STATES, 1)), axis=1)[:, :OUTCOMES]
        paid = rng.random((STATES, OUTCOMES))
        tables, law, trusted = drawn_world(rng, options["sources"], actions)
        trial = options.get("trial", 0)
        counts = logs_of(rng, tables, law, kinds, paid, options["visits"], trial)
    gammas = {f"s{options['sources']}": 1.0} if trial else {}
    belief = cs.posterior(counts, HORIZON, 1.0, confounding=gammas, draws=DRAWS)
    with patch.object(model, "ENOUGH_VISITS", 0.0):  # these logs show all outcomes that there are
        drawn = belief._drawn[0][:, 0, 0]
    truth = optimum(law, kinds, paid)[0]
    low, high = np.quantile(drawn, (0.05, 0.95))
    rank = float((np.mean(drawn < truth) + np.mean(drawn <= truth)) / 2)
    return {"rank": rank, "width": float(high - low), "error": float(drawn.mean() - truth), "trusted": trusted}


def run_calibration(part: str) -> dict[str, Any]:
    """Return where V* lies among the draws in each world of a part."""
    kind, worlds = part.split("; ")
    first, last = map(int, worlds.split("-"))
    found = [one_world(kind, seed) for seed in range(first, last + 1)]
    return {name: [one[name] for one in found] for name in found[0]}


def shares_held(parts: Mapping[str, Mapping[str, Any]], kind: str) -> dict[float, float]:
    """Return how often the central intervals of each level held."""
    ranks = np.concatenate([figures["rank"] for part, figures in parts.items() if part.startswith(f"{kind};")])
    return {level: float((abs(ranks - 0.5) <= level / 2).mean()) for level in LEVELS}


def holds(parts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether intervals hold as often as they say, within sampling error."""
    fine = True
    for kind in KINDS:
        for level, share in shares_held(parts, kind).items():
            error = (level * (1 - level) / WORLDS) ** 0.5
            fine &= share >= level - SLACK * error
            print(f"  {kind}: intervals of {level:.0%} hold in {share:.1%} of {WORLDS} worlds")
    return fine
