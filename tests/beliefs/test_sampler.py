"""The sampler draws from the distribution that is written down: against closed forms, quadrature and enumeration."""

import itertools

import numpy as np
import pytest
from cells import REWARDS, beta_nodes, counts_of, drawn_outcomes, model_of, moments, polya, told
from handmade import counts_of_entries
from hypothesis import given, strategies as st
from properties import fewer

import causal_shaping as cs
from causal_shaping.beliefs import _kernels as kernels
from causal_shaping.beliefs._evidence import Evidence
from causal_shaping.beliefs._kernels import BLUNT, log_mix, mean_world, observe, plan
from causal_shaping.beliefs.draws import each_draw
from causal_shaping.beliefs.model import Model, room_for
from causal_shaping.bounds.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")

ONE = [[[6, 3, 0, 0], [0, 2, 5, 4]]]  # one source, two actions: the first was seen to have two of four outcomes
NOBODY, FULL = 0, 1


def exact_moments(n, cell, alpha):
    """Mean and variance of L + F q: L a propensity times shares, q ~ Dirichlet(alpha); all independent."""
    n = np.asarray(n, dtype=float)
    taken, visits, actions = n[cell].sum(), n.sum(), len(n)
    (a, _), second = moments([taken + 1 / actions, visits - taken + 1 - 1 / actions])
    a2 = second[0, 0]
    share, share2 = moments([*n[cell], 1.0])
    q, q2 = moments(alpha)
    seen, last = share[:-1], share[-1]
    mean_l, square_l = a * seen, a2 * np.diag(share2)[:-1]
    free, square_free = 1 - a * (1 - last), 1 - 2 * a * (1 - last) + a2 * (1 - 2 * last + share2[-1, -1])
    cross = mean_l - a2 * (seen - share2[:-1, -1])  # E[L F]
    mean = mean_l + free * q
    return mean, square_l + 2 * cross * q + square_free * np.diag(q2) - mean**2


@pytest.mark.parametrize("cell", [0, 1])
@pytest.mark.parametrize("hypothesis", [NOBODY, FULL])
def test_draws_have_the_mean_and_the_variance_of_the_hypothesis(hypothesis, cell):
    model = model_of(ONE, only=hypothesis)
    alpha = np.full(4, 0.25)
    if hypothesis == FULL:
        guess = model.guess
        said, entries = np.zeros(4), range(model.first_entry[cell], model.first_entry[cell + 1])
        for e in entries:
            said[np.searchsorted(REWARDS, model.level[model.node_level[model.node[e]]])] = guess.weight[e, 0]
        alpha = guess.strength[cell, 0] * (said + guess.flat[cell, 0] / 4)
        assert alpha.sum() == pytest.approx(guess.strength[cell, 0])
    mean, variance = exact_moments(ONE[0], cell, alpha)
    found = drawn_outcomes(model, 20_000, cell)
    error = np.sqrt(variance / len(found))
    assert (abs(found.mean(axis=0) - mean) < 4.5 * error + 1e-4).all()
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.08, atol=1e-4)


def test_nothing_is_drawn_for_actions_that_are_not_admissible_and_the_others_are_drawn_as_before():
    model = model_of(ONE, only=NOBODY)
    memory, rng, found = model.memory(0), np.random.default_rng(0), np.zeros((20_000, 4))
    room, only = room_for(model, memory), np.array([[False, True]])
    for row in found:
        room.reward[0], room.unknown[0] = np.nan, np.nan  # what a draw before may have left
        kernels.draw(rng, model.shape, model.guess, memory, only, room)
        assert (room.first[1], room.reward[0], room.unknown[0]) == (0, 0.0, 0.0)
        np.add.at(row, np.searchsorted(REWARDS, room.paid[: room.first[2]]), room.chance[: room.first[2]])
    mean, variance = exact_moments(ONE[0], 1, np.full(4, 0.25))
    assert (abs(found.mean(axis=0) - mean) < 4.5 * np.sqrt(variance / len(found)) + 1e-4).all()
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.08, atol=1e-4)


def quadrature(n, cell, seen, outcomes, nodes=16):
    """Means and variances of p after online counts, one source who saw the first two outcomes, flat free mass.

    Over the propensity, two shares (sticks), and q of the outcomes (sticks): the integrand is a polynomial.
    """
    n = np.asarray(n, dtype=float)
    taken, visits, actions = n[cell].sum(), n.sum(), len(n)
    sticks = [(taken + 1 / actions, visits - taken + 1 - 1 / actions), (n[cell][0], n[cell][1] + 1), (n[cell][1], 1.0)]
    sticks += [(1 / outcomes, (outcomes - 1 - i) / outcomes) for i in range(outcomes - 1)]
    points, weights = zip(*(beta_nodes(a, b, nodes) for a, b in sticks), strict=True)
    a, s0, s1, *q = np.meshgrid(*points, indexing="ij", sparse=True)
    weight = np.ones(())
    for part in np.meshgrid(*weights, indexing="ij", sparse=True):
        weight = weight * part
    low = [a * s0, a * (1 - s0) * s1, *[0.0] * (outcomes - 2)]
    left, p = 1.0, []
    for o in range(outcomes):
        piece = left * q[o] if o < outcomes - 1 else left
        left = left * (1 - q[o]) if o < outcomes - 1 else 0.0
        p.append(low[o] + (1 - low[0] - low[1]) * piece)
    for chance, m in zip(p, seen, strict=True):
        weight = weight * chance**m
    weight = weight / weight.sum()
    mean = np.array([(weight * chance).sum() for chance in p])
    return mean, np.array([(weight * chance**2).sum() for chance in p]) - mean**2


@pytest.mark.parametrize("online", [[4, 8], [9, 0], [0, 1]])
def test_the_gibbs_step_has_the_exact_posterior_as_its_limit(online):
    logs = [[[5, 3], [6, 4]]]
    model = model_of(logs, only=NOBODY, rewards=REWARDS[:2])
    memory = told(model, [online])
    found = drawn_outcomes(model, 30_000, rewards=REWARDS[:2], memory=memory)
    mean, variance = quadrature(logs[0], 0, online, 2)
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=0.006)
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.1)


def test_the_gibbs_step_with_two_sources_has_the_posterior_by_importance_sampling_as_its_limit():
    logs, online = np.array([[[5, 2], [6, 4]], [[2, 4], [3, 9]]]), [2, 7]
    model = model_of(logs, only=NOBODY, rewards=REWARDS[:2])
    memory = told(model, [online])
    found = drawn_outcomes(model, 30_000, rewards=REWARDS[:2], memory=memory)
    rng, size = np.random.default_rng(1), 1_000_000
    low = np.zeros((size, 2))
    for source in logs:
        taken, visits = source[0].sum(), source.sum()
        share = rng.dirichlet([*source[0], 1.0], size)[:, :2]
        low = np.maximum(low, share * rng.beta(taken + 0.5, visits - taken + 0.5, size)[:, None])
    low = low[low.sum(axis=1) <= 1]
    p = low + (1 - low.sum(axis=1, keepdims=True)) * rng.dirichlet([0.5, 0.5], len(low))
    weight = np.prod(p ** np.array(online), axis=1)
    mean = weight @ p / weight.sum()
    variance = weight @ p**2 / weight.sum() - mean**2
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=0.006)
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.1)


@pytest.mark.parametrize("seed", range(4))
def test_evidence_is_the_product_of_dirichlet_multinomials_in_any_order(seed):
    logs = np.array([[[5, 2, 1, 0], [6, 0, 4, 2]], [[2, 4, 0, 3], [0, 3, 9, 1]]])
    model, rng = model_of(logs), np.random.default_rng(seed)
    guess, online = model.guess, rng.multinomial(6, rng.dirichlet(np.ones(4)), 2)
    rows = [(x, o) for x in range(2) for o in range(4) for _ in range(online[x, o])]
    memory = model.memory(100)
    memory.against[2] = -1.0  # read like a trial, which raises no alarm
    for i in rng.permutation(len(rows)):
        x, o = rows[i]
        observe(model.shape, guess, memory, x, 1, REWARDS[o], 1.0)
    assert not np.isinf(memory.ratio).any()
    components = guess.strength.shape[1]
    ratio = np.zeros((2, components))
    for x, c in itertools.product(range(2), range(components + 1)):
        low, weight = np.zeros(4), np.zeros(4)
        for e in range(model.first_entry[x], model.first_entry[x + 1]):
            o = np.searchsorted(REWARDS, model.level[model.node_level[model.node[e]]])
            low[o], weight[o] = guess.lower[e], guess.weight[e, c] if c < components else 0.0
        flat = guess.flat[x, c] if c < components else 1.0
        mean = low + guess.free[x] * (weight + flat / 4)
        assert mean.sum() == pytest.approx(1)
        found = polya(online[x], guess.sharpness[x, c] * mean)
        ratio[x] += -found if c == components else np.eye(components)[c] * found
    np.testing.assert_allclose(memory.ratio, ratio, atol=1e-9)
    held = guess.hypotheses
    for h in range(1, len(held.prior)):
        c, doubt = held.component[h], held.doubt[h]
        judged = np.delete(ratio[:, c], held.aside[h]) if held.aside[h] >= 0 else ratio[:, c]
        expected = sum(np.log((1 - doubt) * np.exp(part) + doubt) for part in judged)
        assert memory.evidence[h] == pytest.approx(expected, abs=1e-9)
    assert log_mix(800.0, 0.5) == pytest.approx(800 + np.log(0.5))


def test_the_mean_world_is_the_mean_of_the_draws():
    model = model_of(ONE)
    memory = model.memory(0)
    world = mean_world(model.shape, model.guess, memory, model.space.is_admissible.copy())
    for cell in range(2):
        here, mean = slice(world.first[cell], world.first[cell + 1]), np.zeros(4)
        np.add.at(mean, np.searchsorted(REWARDS, world.paid[here]), world.chance[here])
        assert mean.sum() == pytest.approx(1)
        np.testing.assert_allclose(drawn_outcomes(model, 20_000, cell).mean(axis=0), mean, atol=0.01)


def random_counts(seed, states=3, actions=2, outcomes=3):
    """Logs of two sources in a random world; some outcomes end the episode."""
    rng = np.random.default_rng(seed)
    after = rng.integers(-1, states, (states, outcomes))
    paid = rng.integers(0, 5, (states, outcomes)) / 4
    law = rng.dirichlet(np.full(outcomes, 0.7), (states, actions))
    n = rng.multinomial(rng.poisson(rng.choice([3, 30, 1000]), (2, states, actions)), law)
    source, state, action, outcome = np.nonzero(n)
    chosen, reward, times = after[state, outcome], paid[state, outcome], n[n > 0]
    columns = {"source": source, "state": state, "action": action, "next_state": chosen, "terminated": chosen < 0}
    return counts_of_entries(cs.Space(range(states), range(actions)), times, reward, **columns, sources="ab")


options = st.fixed_dictionaries(
    {"support": st.sampled_from(["any", "observed", "observed-action"]), "confidence": st.sampled_from([None, 0.9])}
)


@fewer(40)
@given(st.integers(0, 10**6), options)
def test_worlds_respect_what_is_proven_and_the_support(seed, chosen):
    counts = random_counts(seed)
    belief = cs.posterior(counts, 4, 1.5, **chosen)
    evidence = Evidence(counts, belief.settings)
    masses, model = evidence.masses(), belief.model
    unknown = model.unknown.reshape(3, 2)
    for world in belief.sample(3, seed):
        end = int(np.flatnonzero(world.terminal)[0]) if world.terminal.any() else -1
        for i, (s, x) in enumerate(zip(masses.state, masses.action, strict=True)):
            law: dict = {}
            for after, paid, chance in zip(world.next_state[s, x], world.reward[s, x], world.noise[s], strict=True):
                if chance > 0:
                    law[int(after), float(paid)] = law.get((int(after), float(paid)), 0.0) + chance
            allowed, own = set(), counts.state == s
            if chosen["support"] == "observed-action":
                own &= counts.action == x
            for after, ended, paid in zip(
                counts.next_state[own], counts.terminated[own], counts.reward_min[own], strict=True
            ):
                allowed.add((end if ended else int(after), float(paid)))
            assert unknown[s, x] or set(law) <= allowed
            if chosen["confidence"] is not None and masses.total[i] <= 1:
                for o in range(masses.first[i], masses.first[i + 1]):
                    key = (
                        end if masses.after[o] == 3 else int(masses.after[o]),
                        float(evidence.rewards[masses.reward[o]]),
                    )
                    assert law.get(key, 0.0) >= masses.lower[o] - 1e-9


@fewer(40)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["any", "observed", "observed-action"]),
    st.sampled_from([1.0, 0.9]),
    st.sampled_from([np.inf, 3.0, 1.2, {"a": 1.5}]),
)
def test_values_of_worlds_never_exceed_ceilings_of_the_same_settings(seed, support, discount, confounding):
    counts = random_counts(seed)
    held = {"support": support, "confidence": 0.9, "discount": discount, "confounding": confounding}
    belief, ceilings = cs.posterior(counts, 4, 1.5, **held), cs.value_ceilings(counts, 4, 1.5, **held)
    for sample in each_draw(belief.model, 5, seed):
        assert (sample.q_values <= ceilings.q_values + 1e-9)[:, ~ceilings.terminal].all()


def test_free_mass_respects_the_upper_limits_of_finite_confounding():
    logs = [[[300, 100, 0], [100, 200, 300]]]
    drawn = {}
    for gamma in (1.5, np.inf):
        model = model_of(logs, rewards=REWARDS[:3], confounding=gamma)
        drawn[gamma] = drawn_outcomes(model, 500, rewards=REWARDS[:3])
        np.testing.assert_allclose(drawn[gamma].sum(axis=1), 1)
    # The first action has a propensity of .4 and shares of 3/4, 1/4 and 0: at most a factor of .4 + .6 * 1.5 = 1.3.
    guess = model_of(logs, rewards=REWARDS[:3], confounding=1.5).guess
    error = np.sqrt(0.75 * 0.25 / 400)  # of a share
    assert (guess.upper[:2] >= np.minimum(1.3 * (np.array([0.75, 0.25]) + 3 * error), 1)).all()
    assert (guess.upper[:2] < 1.3 * np.array([0.75, 0.25]) + 0.2).all()
    assert guess.rest[0] < 0.03
    assert (drawn[1.5][:, :2] <= guess.upper[:2] + 1e-9).all()
    assert (drawn[1.5][:, 2] <= guess.rest[0] + 1e-9).all()
    assert drawn[np.inf][:, 2].max() > 0.3
    assert not model_of(logs, rewards=REWARDS[:3]).guess.limited.any()


@pytest.mark.parametrize(("support", "horizon"), [("observed", 4), ("any", 1)])
def test_tables_have_the_values_of_the_plan(support, horizon):
    """What nobody has seen may follow under `any`: tables know it in the last step only."""
    unseen = False
    for seed in range(5):
        belief = cs.posterior(random_counts(seed), horizon, 1.5, support=support, discount=0.9)
        if support == "observed" and belief.model.unknown.any():
            continue
        for sample, world in zip(each_draw(belief.model, 3, 7), belief.sample(3, 7), strict=True):
            np.testing.assert_allclose(world.optimum(horizon, 0.9).q_values[:, :3], sample.q_values, atol=1e-9)
            unseen |= (sample.drawn.unknown > 0).any()
    assert unseen == (support == "any")


def test_trials_count_as_the_agents_own_steps():
    confounded, trial = np.array([[[5, 2, 1], [6, 3, 4]]]), np.array([[[3, 1, 2], [1, 4, 1]]])
    alone = model_of(confounded, rewards=REWARDS[:3])
    memory = told(alone, trial[0])
    both = model_of(np.concatenate([confounded, trial]), rewards=REWARDS[:3], confounding={"b": 1.0})
    assert both.sources == ("a",)
    other = both.memory(0)
    np.testing.assert_allclose(other.evidence, memory.evidence, atol=1e-9)
    np.testing.assert_array_equal(other.total, memory.total)
    worlds = [
        mean_world(model.shape, model.guess, held, model.space.is_admissible.copy())
        for model, held in ((alone, memory), (both, other))
    ]
    np.testing.assert_allclose(worlds[0].reward, worlds[1].reward, atol=1e-9)


def mean_plan(belief):
    """The values of the plan in the mean of the posterior."""
    model = Model(belief.space, belief.counts, belief.settings)
    memory, space = model.memory(0), model.space
    q_values = np.zeros((model.settings.horizon, len(space.states), len(space.actions)))
    world = mean_world(model.shape, model.guess, memory, model.space.is_admissible.copy())
    plan(model.shape, memory, world, space.is_admissible, model.terminal, q_values)
    return q_values


@fewer(20)
@given(st.integers(0, 10**6), st.sampled_from(["any", "observed"]))
def test_the_order_of_states_and_sources_does_not_matter(seed, support):
    counts, rng = random_counts(seed), np.random.default_rng(seed)
    belief = cs.posterior(counts, 4, 1.5, support=support)
    order = rng.permutation(3)
    space = cs.Space([counts.space.states[i] for i in order], counts.space.actions[::-1])
    moved = counts.to_space(space)
    turned = cs.Counts.combined(
        space,
        ["b", "a"],
        {name: getattr(moved, name) for name in cs.Counts.COLUMNS} | {"source": 1 - moved.source},
    )
    other = cs.posterior(turned, 4, 1.5, support=support)
    np.testing.assert_allclose(mean_plan(other), mean_plan(belief)[:, order][..., ::-1], atol=1e-9)
    np.testing.assert_allclose(other.trust.by_state[::-1], belief.trust.by_state[:, order], atol=1e-9)
    assert counts_of(ONE).sources == ("a",)


def test_what_no_log_holds_is_never_impossible():
    logs = [[[400, 300, 300, 0]], [[300, 400, 300, 0]]]  # all mass is proven: no other action was taken
    model = model_of(logs)
    assert (model.guess.free > 0).all()
    memory = model.memory(10)
    observe(model.shape, model.guess, memory, 0, 1, 3.0, 1.0)
    assert not np.isnan(memory.evidence).any()
    assert np.isfinite(memory.against).all()
    found = mean_world(model.shape, model.guess, memory, model.space.is_admissible.copy())
    np.testing.assert_allclose(found.chance.sum() + found.unknown, 1)
    assert (drawn_outcomes(model, 20, memory=memory)[:, 3] > 0).all()


def _rows(rows, step_indexed=True):
    """Counts of rows: step, state, action, next state (-1: unknown), terminated, reward."""
    step, state, action, after, ended, paid = map(np.array, zip(*rows, strict=True))
    columns = {"step": step if step_indexed else None, "state": state, "action": action, "next_state": after}
    n = np.full(len(rows), 4.0)
    return counts_of_entries(cs.Space(range(2), range(2)), n, paid, **columns, terminated=ended, sources="a")


def test_a_step_of_which_no_outcome_is_known_may_lead_anywhere():
    # The last step of a truncated episode: what followed was not logged, and its reward was seen at another step.
    counts = _rows(
        [(0, 0, 0, 1, False, 1.0), (0, 0, 1, -1, True, 0.0), (0, 1, 0, 0, False, 1.0), (1, 1, 0, -1, False, 1.0)]
    )
    model = cs.posterior(counts, 2, 1.0).model
    found = mean_world(model.shape, model.guess, model.memory(0), model.space.is_admissible.copy())
    sums = np.bincount(np.repeat(np.arange(8), np.diff(found.first)), found.chance, minlength=8)
    np.testing.assert_allclose(sums + found.unknown, 1)


def test_logs_without_any_known_outcome_say_nothing():
    belief = cs.posterior(_rows([(0, 0, 0, -1, False, 1.0)], step_indexed=False), 2, 1.0)
    assert np.isfinite(belief.mean.values).all()


def test_a_reward_that_comes_after_many_others_is_learned_as_it_is():
    space = cs.Space(["s"], range(2))
    model = Model(space, None, Settings(horizon=1, reward_bound=100.0))
    memory = model.memory(200)
    for i in range(100):
        observe(model.shape, model.guess, memory, 0, 1, i / 100, 1.0)
    for _ in range(50):
        observe(model.shape, model.guess, memory, 1, 0, 100.0, 1.0)
    found = mean_world(model.shape, model.guess, memory, model.space.is_admissible.copy())
    assert found.reward[1] > 90
    np.testing.assert_allclose(found.reward[0], 0.495, atol=1.5)


def test_a_trusted_source_that_is_blunt_is_worth_few_visits():
    n = [[[300, 100, 0, 0], [300, 300, 0, 0]]]
    held = model_of(n).guess.hypotheses
    blunt = int(np.flatnonzero(held.blunt)[0])
    model = model_of(n, only=blunt)
    guess = model.guess
    sure = guess.hypotheses._replace(doubt=np.full(len(held.prior), 1e-12))
    model.guess = guess._replace(hypotheses=sure)
    strength, weight, flat = guess.strength[0, 0], guess.weight[:2, 0], guess.flat[0, 0]
    assert strength > 20
    q = weight + flat / 2
    _, variance = exact_moments(np.array(n[0])[:, :2], 0, BLUNT * q)
    found = drawn_outcomes(model, 1_000, skip=1)[:, :2]
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.25)
