"""The compiled parts of a fit, against computations that share nothing with them."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

from causal_shaping.fitted import _forest as forest, _kernels as kernels

pytest.importorskip("sklearn")

SOURCES, ACTIONS, ATOMS = 3, 2, 5


# Single numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_expectiles_minimise_the_asymmetric_squares(level):
    rng = np.random.default_rng(0)
    for count in (1, 2, 7, 100):
        values, weights = rng.normal(size=count), rng.integers(0, 3, count).astype(float)
        weights[0] = 1.0

        def loss(e, values=values, weights=weights):
            return (weights * np.where(values > e, level, 1 - level) * (values - e) ** 2).sum()

        bounds = (values.min(), values.max() + 1e-9)
        best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-9})
        assert kernels.expectile(values, weights, count, level) == pytest.approx(best.x, abs=1e-6)


def test_an_expectile_of_nothing_is_nothing():
    assert kernels.expectile(np.array([1.0]), np.array([0.0]), 1, 0.9) == kernels.NOTHING
    assert kernels.expectile(np.array([1.0]), np.array([1.0]), 0, 0.9) == kernels.NOTHING


# Trees ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grown():
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(400, 3)).astype(np.float32)
    seen[:, 1] = seen[:, 1].round()  # ties with thresholds
    outcomes = np.stack([np.sin(3 * seen[:, 0]), seen[:, 1] + seen[:, 2]], axis=1)
    return seen, outcomes, *forest.grow(seen, outcomes, 3, 4, seed=1)


def test_trees_predict_what_scikit_learn_does_where_its_leaves_are_not_large(grown):
    from sklearn.ensemble import ExtraTreesRegressor

    seen, outcomes, trees, means = grown
    new = np.random.default_rng(1).normal(size=(300, 3)).astype(np.float32)
    for points in (seen, new):
        leaves = forest.leaves_of(trees, points)
        other = ExtraTreesRegressor(3, min_samples_leaf=4, random_state=1).fit(seen, outcomes)
        rows = [one.tree_.n_node_samples[one.apply(points)] for one in other.estimators_]
        same = np.max(rows, axis=0) < forest.LARGE * 4
        assert same.mean() > 0.5
        assert means[leaves].mean(axis=1)[same] == pytest.approx(other.predict(points)[same])


@pytest.mark.parametrize("seed", range(5))
def test_a_few_rows_far_away_keep_no_leaf_large(seed):
    rng = np.random.default_rng(seed)
    seen = rng.normal(size=(4000, 2)).astype(np.float32)
    seen[:20] *= 100  # most thresholds split too few rows off, and scikit-learn then stops
    seen[3000:] = seen[3000]  # which cannot be split
    trees, means = forest.grow(seen, np.sin(seen.astype(float)), 8, 20, seed)
    leaves = forest.leaves_of(trees, seen)
    sizes = np.bincount(leaves.ravel(), minlength=len(means))
    assert sizes.min() >= 20
    equal = np.unique(leaves[3000:])
    assert len(equal) == 8
    assert np.delete(sizes, equal).max() < forest.LARGE * 20
    mean = [np.sin(seen[leaves[:, 0] == leaf].astype(float)).mean(axis=0) for leaf in range(leaves[:, 0].max() + 1)]
    assert means[: len(mean)] == pytest.approx(np.array(mean))


@pytest.mark.parametrize("least", [0, 1, 20, 150, 10_000])
def test_regions_are_the_smallest_subtrees_of_enough_rows(grown, least):
    seen, _, trees, means = grown
    size = np.bincount(forest.leaves_of(trees, seen).ravel(), minlength=len(means))
    found = np.empty((len(means), 2), dtype=np.int64)
    kernels.regions(trees.nodes, trees.roots, size, least, found)

    def below(node):
        if trees.nodes[node, kernels.FEATURE] < 0:
            return [int(trees.nodes[node, kernels.LEFT])]
        return below(trees.nodes[node, kernels.LEFT]) + below(trees.nodes[node, kernels.RIGHT])

    def visit(node, around):
        own = below(node)
        around = own if size[own].sum() >= least else around
        if trees.nodes[node, kernels.FEATURE] < 0:
            assert list(range(*found[own[0]])) == sorted(around)
        else:
            for side in (kernels.LEFT, kernels.RIGHT):
                visit(trees.nodes[node, side], around)

    for root in range(trees.roots):
        visit(root, below(root))


# What leaves show -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[False, True], ids=["by-state", "by-action"])
def rows(request):
    """Rows of two trees of four leaves each, and what was counted of them."""
    rng = np.random.default_rng(3)
    n = 400
    leaves = np.stack([rng.integers(0, 4, n), rng.integers(4, 8, n)])
    order = np.argsort(leaves, axis=1, kind="stable").astype(np.int32).ravel()
    bounds = np.append(0, np.cumsum(np.bincount(leaves.ravel(), minlength=8))).astype(np.int64)
    held = {
        "source": rng.integers(0, SOURCES, n).astype(np.int16),
        "action": rng.integers(0, ACTIONS, n).astype(np.int32),
        "known": rng.random(n) < 0.8,
        "weight": rng.integers(0, 2, n).astype(float),
        "targets": rng.normal(size=n).round(2),
        "gains": rng.normal(size=n),
    }
    atoms = np.linspace(held["targets"].min(), held["targets"].max(), ATOMS)
    lower, share = np.empty(n, np.int32), np.empty(n)
    kernels.project(held["targets"], atoms, lower, share)
    tried = rng.random((8, ACTIONS))
    logged = kernels.Logged(**held, lower=lower, share=share)
    shown = kernels.tally(order, bounds, logged, 0.9, (SOURCES, ACTIONS, ATOMS), request.param, tried)
    return leaves, held, atoms, lower, share, shown


def dense(shown, leaf):
    masses = np.zeros(SOURCES * ACTIONS * ATOMS)
    entries = slice(shown.first[leaf], shown.first[leaf + 1])
    masses[shown.cell[entries]] = shown.mass[entries]
    return masses.reshape(SOURCES, ACTIONS, ATOMS)


def test_leaves_are_counted_as_a_plain_loop_does(rows):
    leaves, held, _, lower, share, shown = rows
    masses, worth = np.zeros((8, SOURCES, ACTIONS, ATOMS)), np.zeros((8, SOURCES, ACTIONS))
    taken, known, total = np.zeros_like(worth), np.zeros_like(worth), np.zeros((8, SOURCES))
    for tree in leaves:
        for k, leaf in enumerate(tree):
            i, x, w = held["source"][k], held["action"][k], held["weight"][k]
            total[leaf, i] += w
            taken[leaf, i, x] += w
            if held["known"][k]:
                known[leaf, i, x] += w
                worth[leaf, i, x] += w * held["targets"][k]
                masses[leaf, i, x, lower[k]] += w * (1 - share[k])
                masses[leaf, i, x, lower[k] + 1] += w * share[k]
    assert np.array([dense(shown, leaf) for leaf in range(8)]) == pytest.approx(masses)
    for found, expected in ((shown.rows, total), (shown.taken, taken), (shown.known, known), (shown.worth, worth)):
        assert found == pytest.approx(expected)


def test_expectiles_are_of_gains_with_weight_and_known_outcome(rows):
    leaves, held, _, _, _, shown = rows
    for leaf in range(8):
        for i in range(SOURCES):
            for x in range(shown.best.shape[2]):
                which = (leaves == leaf).any(axis=0) & (held["source"] == i) & held["known"] & (held["weight"] > 0)
                which &= (held["action"] == x) | (shown.best.shape[2] == 1)
                gains = held["gains"][which]
                expected = kernels.expectile(gains, np.ones(len(gains)), len(gains), 0.9)
                assert shown.best[leaf, i, x] == pytest.approx(expected)


# Backups ----------------------------------------------------------------------------------------------------------


def rule_of(**options):
    usual = {
        "confounding": np.full(SOURCES, np.inf),
        "by_action": False,
        "restricted": True,
        "vacuous": 9.0,
        "rarest_action": 0.001,
        "least_rows": 1.0,
    }
    return kernels.Rule(**(usual | options))


def share_table(rng, known=1.0):
    """Random shares [sources, actions, atoms] with zeros, and those of actions, part of whose outcomes is unknown."""
    masses = rng.dirichlet(np.full(ACTIONS * ATOMS, 0.5), SOURCES).reshape(SOURCES, ACTIONS, ATOMS)
    masses = np.where(masses < 0.02, 0.0, masses)
    masses /= masses.sum(axis=(1, 2), keepdims=True)
    return masses * known, masses.sum(axis=2)


def backed_up(masses, taken, best, atoms, rule, guess=False, admissible=None):
    """Values of the actions at one observation, whose leaf shows some shares, and the excess."""
    sources, actions, _ = masses.shape
    shown = kernels.Tally(
        first=np.array([0, masses.size]),
        cell=np.arange(masses.size, dtype=np.uint32),
        mass=masses.ravel(),
        rows=np.ones((1, sources)),
        taken=taken[None],
        known=masses.sum(axis=2)[None],
        worth=(masses @ atoms)[None],
        best=best[None],
        tried=taken.max(axis=0)[None],
    )
    mask = np.ones((1, actions), dtype=bool) if admissible is None else np.array([admissible])
    found, leaf, before = np.empty((1, actions)), np.zeros((1, 1), dtype=np.int32), np.zeros(1)
    worst = kernels.back_up(np.zeros(1, dtype=np.int64), leaf, before, shown, atoms, rule, mask, guess, found)
    return found[0], worst


def largest(atoms, least, most, free):
    """The most that masses between limits are worth, where whatever fits in no atom is worth `free`."""
    bounds = [*zip(least, most, strict=True), (0, 1)]
    found = linprog(-np.append(atoms, free), A_eq=np.ones((1, len(atoms) + 1)), b_eq=[1.0], bounds=bounds)
    return -found.fun if found.status == 0 else None


def proven_and_caps(masses, taken, x, gamma):
    """What a source proves of each atom under do(x), and how much it allows."""
    p = taken[x]
    if p == 0:
        return np.zeros(ATOMS), np.ones(ATOMS)
    unknown = p - masses[x].sum()
    least = masses[x] / p * (p + (1 - p) / gamma)
    most = np.ones(ATOMS) if gamma == math.inf else (masses[x] + max(unknown, 0)) / p * (p + (1 - p) * gamma)
    return least, np.minimum(most, 1.0)


def bound_by_program(masses, taken, x, w, atoms, gammas):
    """The least of: free mass worth w, and free mass below every source's cap."""
    limits = [proven_and_caps(masses[i], taken[i], x, gammas[i]) for i in range(SOURCES)]
    least, most = np.max([low for low, _ in limits], axis=0), np.min([high for _, high in limits], axis=0)
    if least.sum() > 1:
        return (least * atoms).sum() / least.sum()
    bounds = [largest(atoms, least, least, w)]
    if any(gamma < math.inf and taken[i, x] > 0.001 for i, gamma in enumerate(gammas)):
        most = np.maximum(most, least)
        left = 1 - most.sum()  # what no atom has room for is worth w
        bounds.append(most @ atoms + left * w if left > 0 else largest(atoms, least, most, -1e3))
    return min(bounds)


@pytest.mark.parametrize(
    "gammas", [(math.inf,) * 3, (math.inf, 2.0, math.inf), (1.0, math.inf, 3.0), (1.0,) * 3], ids=str
)
@pytest.mark.parametrize("known", [1.0, 0.8])
def test_ceilings_are_those_of_a_linear_program(gammas, known):
    rng = np.random.default_rng(0)
    atoms = np.array([-2.0, -0.5, 0.0, 1.0, 2.5])
    for _ in range(25):
        masses, taken = share_table(rng, known)
        w = rng.uniform(0, 3)
        found, _ = backed_up(masses, taken, np.full((SOURCES, 1), w), atoms, rule_of(confounding=np.array(gammas)))
        for x in range(ACTIONS):
            assert found[x] == pytest.approx(bound_by_program(masses, taken, x, w, atoms, gammas), abs=1e-7)


def test_an_untried_action_may_do_anything_and_a_rare_one_counts_as_untried():
    rng = np.random.default_rng(1)
    masses, _ = share_table(rng)
    masses[:, 1] *= 0.0005 / masses[:, 1].sum(axis=1, keepdims=True)
    best = np.full((SOURCES, 1), 0.5)
    atoms = np.linspace(-1, 0, ATOMS)
    for rarest, expected in ((0.001, 4.0), (0.0001, 0.5)):
        rule = rule_of(vacuous=4.0, rarest_action=rarest)
        found, _ = backed_up(masses, masses.sum(axis=2), best, atoms, rule)
        assert found[1] == pytest.approx(expected, abs=0.01)


def test_best_guesses_are_proven_mass_and_what_own_shares_leave():
    rng = np.random.default_rng(5)
    atoms = np.sort(rng.normal(size=ATOMS))
    for _ in range(20):
        masses, taken = share_table(rng)
        found, _ = backed_up(masses, taken, np.ones((SOURCES, 1)), atoms, rule_of(), True)
        for x in range(ACTIONS):
            most = masses[:, x].max(axis=0)
            rest = np.maximum(masses[:, x].sum(axis=0) / taken[:, x].sum() - most, 0)
            if most.sum() >= 1 or rest.sum() == 0:
                expected = most @ atoms / most.sum()
            else:
                expected = most @ atoms + (1 - most.sum()) * (rest @ atoms) / rest.sum()
            assert found[x] == pytest.approx(expected)


def test_the_best_guess_of_an_untried_action_is_what_followed_any_action():
    masses = np.zeros((SOURCES, ACTIONS, ATOMS))
    masses[:, 0] = [0.5, 0, 0, 0, 0.5]
    found, _ = backed_up(masses, masses.sum(axis=2), np.ones((SOURCES, 1)), np.arange(5.0), rule_of(), True)
    assert found == pytest.approx([2.0, 2.0])


def test_leaves_of_several_trees_are_backed_up_together(rows):
    """The shares of an observation are those of all rows in its leaves; w is a mean over its leaves, and a gain."""
    _, _, atoms, _, _, shown = rows
    by_action = shown.best.shape[2] > 1
    rule = rule_of(by_action=by_action, confounding=np.array([np.inf, 2.0, 1.0]), rarest_action=0.0)
    leaves = np.array([[0, 5], [3, 4], [2, 7]], dtype=np.int32)
    before, found = np.array([0.3, -0.2, 1.0]), np.empty((3, ACTIONS))
    mask = np.array([[True, True], [True, False], [True, True]])
    kernels.back_up(np.array([2, 0, 1]), leaves, before, shown, atoms, rule, mask, False, found)
    for k, own in enumerate(leaves):
        total = shown.rows[own].sum(axis=0)
        masses = sum(dense(shown, leaf) for leaf in own) / total[:, None, None]
        taken = shown.taken[own].sum(axis=0) / total[:, None]
        weights = shown.taken[own] if by_action else shown.rows[own][..., None]
        weights = np.where(shown.best[own] > kernels.NOTHING, weights, 0.0)
        gains = (weights * np.where(weights > 0, shown.best[own], 0)).sum(axis=0) / weights.sum(axis=0)
        expected, _ = backed_up(masses, taken, before[k] + gains, atoms, rule, False, mask[k])
        assert found[k] == pytest.approx(expected)


def test_a_source_with_too_few_rows_around_shows_nothing(rows):
    _, _, atoms, _, _, shown = rows
    leaves, found = np.array([[0, 5]], dtype=np.int32), np.empty((1, ACTIONS))
    rule = rule_of(least_rows=1e6, by_action=shown.best.shape[2] > 1)
    kernels.back_up(np.array([0]), leaves, np.zeros(1), shown, atoms, rule, np.ones((1, 2), bool), False, found)
    assert (found == rule.vacuous).all()


# Functions of the observation -------------------------------------------------------------------------------------


def test_reach_excludes_what_is_far_and_keeps_what_was_logged():
    rng = np.random.default_rng(0)
    seen, held = (rng.normal(size=(n, 2)).astype(np.float32) for n in (2000, 500))
    reach = forest.Reach.fit(seen, held, seed=0)
    assert not reach.excludes(seen).any()
    assert reach.missed == reach.excludes(held).mean() < 0.02
    far = np.array([[30.0, 0.0], [0.0, -30.0]], dtype=np.float32)
    assert reach.excludes(far).all()


def test_reach_of_many_coordinates_looks_at_a_projection():
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(500, 100)).astype(np.float32)
    reach = forest.Reach.fit(seen, seen[:0], seed=0)
    assert reach.projection.shape == (100, forest.PROJECTED)
    assert not reach.excludes(seen).any()
    assert math.isnan(reach.missed)
    assert reach.excludes(40 + seen).all()
