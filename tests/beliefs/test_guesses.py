"""What each component says of free mass, and how sharply it is tested: beside plain loops over one state."""

import math

import numpy as np
import pytest
from cells import counts_of, model_of

import causal_shaping as cs
from causal_shaping.beliefs._kernels import BLUNT

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")


def random_counts(rng, sources, actions, outcomes=3):
    """n[source][action][outcome] of sources that watch one world; some never took an action, or missed an outcome."""
    mass = rng.dirichlet(np.ones(outcomes), actions)
    taken = rng.integers(0, 60, (sources, actions)) * (rng.random((sources, actions)) < 0.8)
    taken[:, 0] += 1
    return np.array([[rng.multinomial(taken[i, x], mass[x]) for x in range(actions)] for i in range(sources)])


def proven(n, gammas, x):
    """The masses of the outcomes of an action, scaled to leave something free; their variances; what is free."""
    sources, actions, outcomes = n.shape
    lower, spread = [0.0] * outcomes, [0.0] * outcomes
    for o in range(outcomes):
        best = -1.0
        for i in range(sources):
            took, seen = n[i, x].sum(), n[i].sum()
            often = (took + 1 / actions) / (seen + 1)
            mass = n[i, x, o] / (took + 1) * (often + (1 - often) / gammas[i])
            if mass > best:
                best, by = mass, seen
        lower[o], spread[o] = best, by
    most = 1 - 1 / (n[:, x].sum() + 2)
    scale = min(1.0, most / sum(lower)) if sum(lower) > 0 else 1.0
    lower = [scale * mass for mass in lower]
    spread = [mass * (1 - mass) / (seen + 2) for mass, seen in zip(lower, spread, strict=True)]
    return lower, spread, 1 - sum(lower)


def agreement(n):
    """How much sources agree, as the concentration of a Dirichlet, by moments; over all actions that two took twice."""
    excess = whole = 0.0
    for x in range(n.shape[1]):
        able = [i for i in range(len(n)) if n[i, x].sum() > 1]
        for o in range(n.shape[2]):
            if len(able) > 1 and n[:, x, o].sum() > 0:
                shares = [n[i, x, o] / n[i, x].sum() for i in able]
                mean = sum(shares) / len(able)
                noise = [share * (1 - share) / (n[i, x].sum() - 1) for i, share in zip(able, shares, strict=True)]
                excess += sum((share - mean) ** 2 for share in shares) / (len(able) - 1) - sum(noise) / len(able)
                whole += mean * (1 - mean)
    return 1000.0 if excess <= 0 else min(max(whole / excess - 1, 1.0), 1000.0)


def suggested(n, x, c, lower):
    """Of a component, a source or the pool: its strength, the flat part of it, and the weights of the outcomes."""
    if c < len(n):
        took, flat = n[c, x].sum(), 1.0
        shares, strength = [times / (took + 1) for times in n[c, x]], min(took + 1, 1000) if took else 0.0
    else:
        some = [i for i in range(len(n)) if n[i, x].sum() > 0]
        strength, total = agreement(n) if some else 0.0, n[:, x].sum()
        flat = min(max(0.1 * agreement(n), 1e-3), 4.0)
        shares = [
            sum(n[i, x, o] / n[i, x].sum() for i in some) / max(len(some), 1) * total / (total + 1)
            for o in range(n.shape[2])
        ]
    left = [max(share - mass, 0.0) for share, mass in zip(shares, lower, strict=True)]
    if not strength:
        return 0.0, 1.0, [0.0] * len(left)
    inside = sum(left) / (sum(left) + flat / max(strength, 1.0)) if sum(left) > 0 else 0.0
    worth = flat + strength * inside
    weights = [(1 - flat / worth) * part / sum(left) if part > 0 else 0.0 for part in left]
    return worth, flat / worth, weights


def concentration(possible, lower, spread, free, weights, flat, worth):
    """That of a Dirichlet with the mean and the total variance of L + F q, q ~ Dirichlet(worth * guess)."""
    guess = [weight + flat / possible for weight in weights]
    mean = [mass + free * part for mass, part in zip(lower, guess, strict=True)]
    variance = free**2 * (1 - sum(part**2 for part in guess)) / (worth + 1) + sum(spread)
    return min(max((1 - sum(part**2 for part in mean)) / variance - 1, 1e-3), 1e9)


def highest(n, gammas, x):
    """The most that sources of finite confounding allow: of each outcome, and of all that they never saw."""
    upper, rest = [1.0] * n.shape[2], 1.0
    for own, gamma in zip(n, gammas, strict=True):
        took, seen = own[x].sum(), own.sum()
        if math.isinf(gamma) or not took:
            continue
        often = took / seen
        often = max(often - 4 * math.sqrt(often * (1 - often) / (seen + 1)), 0.0)
        factor = often + (1 - often) * gamma

        def most(share, took=took):
            return min(share + 4 * math.sqrt((share * (1 - share) + 1 / (took + 1)) / (took + 1)), 1.0)

        upper = [min(limit, most(times / took) * factor) for limit, times in zip(upper, own[x], strict=True)]
        rest = min(rest, most(0.0) * factor)
    return upper, rest


@pytest.mark.parametrize("seed", range(12))
def test_what_components_say_is_what_loops_say(seed):
    rng = np.random.default_rng(seed)
    sources, actions = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    n = random_counts(rng, sources, actions)
    agree_with_loops(n, rng.choice([2.0, 5.0, math.inf], sources))


def test_sources_that_disagree_and_one_visit_say_what_loops_say():
    agree_with_loops(np.array([[[30, 6, 2], [3, 20, 9]], [[4, 25, 9], [22, 4, 3]]]), [math.inf, math.inf])
    agree_with_loops(np.array([[[0, 1, 0], [0, 0, 0]]]), [2.0])


def agree_with_loops(n, gammas):
    sources, actions = n.shape[:2]
    names = dict(zip("abc", map(float, gammas), strict=False))
    model = model_of(n, rewards=(0.0, 1.0, 2.0), confounding={name: names[name] for name in "abc"[:sources]})
    guess, components = model.guess, sources + (sources > 1)
    nodes = int((n.sum(axis=(0, 1)) > 0).sum())  # outcomes that were seen after any action
    for x in range(actions):
        lower, spread, free = proven(n, gammas, x)
        seen = np.flatnonzero(n[:, x].sum(axis=0))
        entries = range(model.first_entry[x], model.first_entry[x + 1])
        assert len(entries) == len(seen)
        # Of an action that nobody took, anything may follow; and a second outcome may always turn up.
        possible = max(nodes + (len(seen) == 0), 2)
        np.testing.assert_allclose(guess.lower[entries], np.array(lower)[seen], rtol=1e-12)
        assert guess.free[x] == pytest.approx(free)
        upper, rest = highest(n, gammas, x)
        np.testing.assert_allclose(guess.upper[entries], np.array(upper)[seen])
        assert guess.rest[x] == pytest.approx(rest)
        assert guess.limited[x] == any(n[i, x].sum() > 0 and gammas[i] < math.inf for i in range(sources))
        for c in range(components):
            worth, flat, weights = suggested(n, x, c, lower)
            assert guess.strength[x, c] == pytest.approx(worth)
            assert guess.flat[x, c] == pytest.approx(flat)
            np.testing.assert_allclose(guess.weight[entries, c], np.array(weights)[seen], atol=1e-12)
            padded = [(m, s, w) for m, s, w in zip(lower, spread, weights, strict=True)][: n.shape[2]]
            kept = [padded[o] for o in seen] + [(0.0, 0.0, 0.0)] * (possible - len(seen))
            masses, spreads, told = zip(*kept, strict=True)
            sharp = concentration(possible, masses, spreads, free, told, flat, worth)
            blunt = concentration(possible, masses, spreads, free, told, flat, min(worth, BLUNT))
            assert guess.sharpness[x, c] == pytest.approx(sharp)
            assert guess.blunt[x, c] == pytest.approx(blunt)
        nobody = concentration(possible, masses, spreads, free, [0.0] * possible, 1.0, 1.0)
        assert guess.sharpness[x, -1] == pytest.approx(nobody)


@pytest.mark.parametrize("support", ["observed", "observed-action"])
def test_what_nobody_tried_may_do_what_nobody_saw(support):
    n = [[[500, 3, 0, 0], [0, 0, 0, 0]]]
    belief = cs.posterior(counts_of(n), 1, 3.0, support=support)
    np.testing.assert_array_equal(belief.model.unknown, [False, True])
