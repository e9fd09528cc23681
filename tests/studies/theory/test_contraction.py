"""The causal Bellman operator contracts where the proposition says so, and nowhere else."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from models import cmdps, demonstrators
from properties import fewer

import causal_shaping as cs
from studies.paper.theory.contraction import CausalBellman, contraction, expected_times


@st.composite
def corridors(draw):
    """A corridor of a few states: every action may step towards the end, and may not."""
    states, actions = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    ahead = np.minimum(np.arange(states + 1) + 1, states)
    elsewhere = np.array(draw(st.lists(st.integers(0, states - 1), min_size=states + 1, max_size=states + 1)))
    next_state = np.repeat(np.stack([ahead, elsewhere], axis=-1)[:, None], actions, axis=1)
    next_state[states] = states
    chance = draw(st.sampled_from([0.2, 0.6, 0.9, 1.0]))
    reward = np.array(draw(st.lists(st.integers(-5, 5), min_size=actions, max_size=actions)))[None, :, None] / 5
    reward = np.broadcast_to(reward, next_state.shape) * (np.arange(states + 1) < states)[:, None, None]
    terminal = np.arange(states + 1) == states
    return cs.TabularCMDP(
        next_state, reward, np.tile([chance, 1 - chance], (states + 1, 1)), terminal, np.eye(states + 1)[0]
    )


MODELS = st.one_of(cmdps(states=(1, 3), actions=(1, 3), noises=(1, 2), ending=True), corridors())


def covering(data, model):
    """A demonstrator that tries everything, and sees the noise."""
    beta = data.draw(demonstrators(model))
    return 0.7 * beta + 0.3 / beta.shape[-1]


def operator_of(model, beta, reward_max=1.0):
    return CausalBellman(model.observe(beta, "one"), reward_max)


def slow_operator(model, beta, reward_max, values):
    """T V by summing over the noise."""
    result = np.zeros(len(model.terminal))
    values = np.where(model.terminal, 0.0, values)
    for s in np.flatnonzero(~model.terminal):
        options = []
        for x in range(len(model.actions)):
            mass = model.noise[s] * beta[s, :, x]
            seen = (mass * (model.reward[s, x] + values[model.next_state[s, x]])).sum()
            options.append(seen + (1 - mass.sum()) * (reward_max + values.max()))
        result[s] = max(options)
    return result


@fewer(40)
@given(st.data(), MODELS)
def test_the_operator_is_that_of_the_equation(data, model):
    beta = covering(data, model)
    values = np.array(data.draw(st.lists(st.integers(-50, 50), min_size=5, max_size=5))[: len(model.terminal)]) / 7
    values = np.resize(values, len(model.terminal))
    assert operator_of(model, beta)(values) == pytest.approx(slow_operator(model, beta, 1.0, values))


def norm(difference, weights, alive):
    return (np.abs(difference)[alive] / weights[alive]).max()


@fewer(40)
@given(st.data(), MODELS)
def test_it_shrinks_random_pairs_of_values_by_the_modulus(data, model):
    operator = operator_of(model, covering(data, model))
    found = contraction(operator)
    assert found.applies  # every action may lead closer to the end
    alive = ~model.terminal
    weights = np.append(0.0, found.weights)[found.level]
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    for _ in range(20):
        one, other = rng.normal(size=(2, len(alive))) * rng.choice([0.1, 1, 30]) * alive
        before, after = norm(one - other, weights, alive), norm(operator(one) - operator(other), weights, alive)
        assert after <= found.modulus * before + 1e-12
        times = expected_times(operator)
        assert (
            norm(operator(one) - operator(other), times, alive)
            <= found.modulus_by_times * norm(one - other, times, alive) + 1e-12
        )


@fewer(40)
@given(st.data(), MODELS)
def test_the_propositions_weights_rise_and_satisfy_its_inequality(data, model):
    found = contraction(operator_of(model, covering(data, model)))
    y, q = found.weights, found.epsilon * found.delta
    assert y[0] == 1
    assert (np.diff(y) > 0).all()
    sides = [y[-1] / y[k] * (1 - q) + y[k - 1] / y[k] * q for k in range(1, len(y))]
    assert max(sides) == pytest.approx(found.modulus, abs=1e-12)
    assert 0 < found.shrinks <= 1
    assert found.modulus_by_times <= found.modulus + 1e-12


@fewer(40)
@given(st.data(), MODELS)
def test_it_has_one_fixed_point_above_the_optimum_from_any_start(data, model):
    operator = operator_of(model, covering(data, model), max(model.reward_range[1], 0.0))
    longest = contraction(operator).longest
    assume(longest < 200)  # the rest takes long
    limits = []
    for start in (0.0, 50.0, -50.0):
        values = np.full(len(model.terminal), start)
        for _ in range(int(30 * longest)):
            values = operator(values)
        limits.append(values)
    assert limits[1] == pytest.approx(limits[0], abs=1e-6)
    assert limits[2] == pytest.approx(limits[0], abs=1e-6)
    assert (limits[0] >= model.optimum().values - 1e-6).all()


def test_sets_from_interventions_claim_too_much():
    """The incompetent robot: do(x) may step forward, what its log shows never does, and T grows without end."""
    world = cs.load_world("walking-robot")
    operator = operator_of(world.model, world.demonstrators["incompetent"])
    assert contraction(operator, world.model.transitions()).applies
    assert not contraction(operator).applies
    values = np.zeros(22)
    for _ in range(2000):
        values = operator(values)
    assert (operator(values) - values).max() == pytest.approx(0.75, abs=0.01)
