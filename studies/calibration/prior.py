"""Whether posterior intervals of V* hold as often as they say, in worlds drawn from the prior itself.

A world: in each state, for each source, a table P_i(x, o | s) (how often it takes each action, and what follows),
drawn again where the sources prove more mass than 1; then whom to trust and where; then what actions do: what the
trusted source shows, or the proven mass and a flat guess of the rest. Logs: rows from the tables P_i. Drawn again where
they do not show all outcomes of a state, which an observed support takes for impossible, or no row has some action,
which may then do anything. (That depends on the logs alone, and so does not change what should be believed.)
"""

from unittest.mock import patch

import numpy as np

import causal_shaping as cs
from causal_shaping.beliefs import model
from studies.calibration.listed_tests import counts_of

WORLDS, PER_PART = 200, 50
STATES, OUTCOMES, HORIZON = 4, 3, 5
LEVELS = (0.5, 0.8, 0.9, 0.95)
VISITS, DRAWS = 100, 400
KINDS = {
    "one source": {"sources": 1, "trial": 0},
    "one source and a trial": {"sources": 1, "trial": 10},
    "two sources": {"sources": 2, "trial": 0},
    "two sources and a trial": {"sources": 2, "trial": 10},
}
"""How many sources, and the rows of a trial in each state and action."""

SLACK = 2.5
"""Standard errors by which fewer intervals may hold than they say."""

PARTS = [f"{kind}; {at}-{at + PER_PART - 1}" for kind in KINDS for at in range(0, WORLDS, PER_PART)]


def tables_of(rng, sources, actions):
    """Return propensities [i, x], shares [i, x, o] and proven masses [x, o] of a state: one visit's worth of prior."""
    while True:
        propensity = rng.dirichlet(np.full(actions, 1 / actions), sources)
        share = rng.dirichlet(np.full(OUTCOMES, 1 / OUTCOMES), (sources, actions))
        proven = (propensity[..., None] * share).max(axis=0)
        if (proven.sum(axis=-1) <= 1).all():
            return propensity, share, proven


def drawn_world(rng, sources, actions):
    """Return tables P_i(x, o | s) [i, s, x, o], what actions do [s, x, o], and whom to trust, drawn from the prior."""
    tables = [tables_of(rng, sources, actions) for _ in range(STATES)]
    propensity, share, proven = map(np.array, zip(*tables, strict=True))
    tables = np.swapaxes(propensity[..., None] * share, 0, 1)
    if sources > 1:  # the mean of all is one more guess
        share = np.concatenate([share, share.mean(axis=1, keepdims=True)], axis=1)
    # A guess is refuted in a cell if sources prove more mass of an outcome than it says.
    fits = (share >= proven[:, None] - 1e-12).all(axis=-1)  # [s, i, x]
    held = model.hypotheses(share.shape[1], actions)
    score = held.prior.copy()
    for h in range(1, len(score)):
        misses = ~fits[:, held.component[h]] & (np.arange(actions) != held.aside[h])
        score[h] += np.log(held.doubt[h]) * misses.sum()
    chance = np.exp(score - score.max())
    h = rng.choice(len(chance), p=chance / chance.sum())
    flat = rng.dirichlet(np.full(OUTCOMES, 1 / OUTCOMES), (STATES, actions))
    law = proven + (1 - proven.sum(axis=-1, keepdims=True)) * flat
    if h:
        c = held.component[h]
        right = (rng.random((STATES, actions)) >= held.doubt[h]) & fits[:, c] & (np.arange(actions) != held.aside[h])
        law = np.where(right[..., None], share[:, c], law)
    return tables, law, int(h)


def numbers_of(rng, tables, law, trial):
    """Return how many rows the logs have of each (source, state, action, outcome)."""
    flat = tables.reshape(*tables.shape[:2], -1)
    n = rng.multinomial(VISITS, flat / flat.sum(axis=-1, keepdims=True)).reshape(tables.shape)
    return np.concatenate([n, rng.multinomial(trial, law)[None]]) if trial else n


def optimum(law, after, paid):
    """Return V* of the first step: float64 [states]."""
    values = np.zeros(len(law) + 1)
    for _ in range(HORIZON):
        values[:-1] = np.einsum("sxo,so->sx", law, paid + values[after]).max(axis=-1)
    return values[:-1]


def one_world(kind, seed):
    """Return where V* of a state lies among the draws, and how wide the interval of 90% is."""
    sources, trial = KINDS[kind].values()
    rng = np.random.default_rng([sorted(KINDS).index(kind), seed])
    actions, shows_all = int(rng.integers(2, 4)), False
    while not shows_all:
        # Outcomes of a state are different; -1 is an end.
        after = rng.permuted(np.tile(np.arange(-1, STATES), (STATES, 1)), axis=1)[:, :OUTCOMES]
        paid = rng.random((STATES, OUTCOMES))
        tables, law, trusted = drawn_world(rng, sources, actions)
        n = numbers_of(rng, tables, law, trial)
        shows_all = n.any(axis=(0, 2)).all() and n.any(axis=(0, 3)).all()
    gammas = {f"s{sources}": 1.0} if trial else {}
    belief = cs.posterior(counts_of(n, after, paid), HORIZON, 1.0, confounding=gammas, draws=DRAWS)
    with patch.object(model, "ENOUGH_VISITS", 0.0):  # these logs show all outcomes that there are
        drawn = belief._drawn[0][:, 0, 0]
    truth = optimum(law, after, paid)[0]
    low, high = np.quantile(drawn, (0.05, 0.95))
    rank = float((np.mean(drawn < truth) + np.mean(drawn <= truth)) / 2)
    return {"rank": rank, "width": float(high - low), "error": float(drawn.mean() - truth), "trusted": trusted}


def run_part(part):
    """Return where V* lies among the draws in each world of a part."""
    kind, worlds = part.split("; ")
    first, last = map(int, worlds.split("-"))
    found = [one_world(kind, seed) for seed in range(first, last + 1)]
    return {name: [one[name] for one in found] for name in found[0]}


def holds(parts):
    """Posterior intervals of V* hold as often as they say in 200 worlds drawn from the prior, with confounded logs."""
    fine = True
    for kind in KINDS:
        ranks = np.concatenate([figures["rank"] for part, figures in parts.items() if part.startswith(f"{kind};")])
        for level in LEVELS:
            share = float((abs(ranks - 0.5) <= level / 2).mean())
            fine &= share >= level - SLACK * (level * (1 - level) / WORLDS) ** 0.5
            print(f"  {kind}: intervals of {level:.0%} hold in {share:.1%} of {WORLDS} worlds")
    return fine
