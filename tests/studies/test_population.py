"""The reference for fitted ceilings, on worlds whose ceilings are known."""

import numpy as np
import pytest
from scipy.stats import expectile as expectile_of_scipy

import causal_shaping as cs
from causal_shaping.worlds.continuous import ContinuousWorld
from causal_shaping.worlds.dynamics import Moved
from studies.worlds.optimum import solve
from studies.worlds.population import expectile, population_ceilings


class Listed(ContinuousWorld):
    """A world of tables seen as one with a real coordinate, the number of the state."""

    name, columns = "listed", ("state",)

    def __init__(self, world):
        self.model, self.horizon = world.model, world.horizon
        self.actions, self.noises = world.actions, tuple(world.model.noise[0])
        self.low, self.high = np.zeros(1, np.float32), np.full(1, len(world.states) - 1, np.float32)
        self.reward_range = (self.model.reward.min(), self.model.reward.max())
        self.demonstrators = {
            name: lambda states, beta=beta: beta[self._row(states)] for name, beta in world.demonstrators.items()
        }

    def _row(self, states):
        return states[:, 0].astype(int)

    def start(self, draws):
        return np.zeros((len(draws), 1), np.float32)

    def noise(self, states):
        return self.model.noise[self._row(states)]

    def terminal(self, states):
        return self.model.terminal[self._row(states)]

    def step(self, states, actions, noises, draws):
        where = (self._row(states), actions, noises)
        after = self.model.next_state[where]
        return Moved(after[:, None].astype(np.float32), self.model.reward[where], self.model.terminal[after])


def test_in_a_world_of_tables_they_are_its_ceilings():
    world = cs.load_world("lavacross-easy")
    counts = [world.model.observe(beta, source=name) for name, beta in world.demonstrators.items()]
    found = population_ceilings(Listed(world), grid=len(world.states), level=1, rarest_action=0)
    table = cs.value_ceilings(counts, horizon=world.horizon, reward_max=world.model.reward.max(), support="observed")
    alive = ~world.model.terminal
    assert np.allclose(found.values[:-1][:, alive], table.values[:, alive])


def test_they_are_never_below_the_optimum_at_level_1_and_lower_levels_tighten_them():
    world = cs.load_world("windy-field", horizon=8)
    best = solve(world, 2)
    found = {level: population_ceilings(world, 2, level=level).values for level in (1, 0.99, 0.95)}
    assert (found[1] >= best.values - 1e-12).all()
    distances = [np.abs(values[0] - best.values[0]).mean() for values in found.values()]
    assert distances == sorted(distances, reverse=True)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_expectiles_are_those_of_scipy(level):
    rng = np.random.default_rng(0)
    targets, weights = rng.normal(size=(4, 9)), rng.integers(0, 5, (4, 9)).astype(float)
    own = expectile(targets, weights, level)
    assert own == pytest.approx(
        [expectile_of_scipy(t, level, weights=w) for t, w in zip(targets, weights, strict=True)]
    )
    assert expectile(targets, weights, 1.0) == pytest.approx(np.where(weights > 0, targets, -9).max(axis=1))
    assert expectile(targets[0], np.zeros(9), level) == -np.inf
