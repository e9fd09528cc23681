"""The pass over the steps, and the rows that it works on."""

import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping._progress import no_progress
from causal_shaping.fitted._steps import sweep
from causal_shaping.fitted.settings import Settings


@pytest.fixture(scope="module")
def rows():
    """Logs of a grid world: observations repeat."""
    world = cs.load_world("lavacross-easy")
    return cs.read_transitions(world.collect("random", 300, seed=0).to_pandas(), state=["x", "y"])


class Rising:
    """A model whose errors raise all values from step to step."""

    def fit(self, targets, before):
        self.fits = getattr(self, "fits", 0) + 1

    def q_values(self, which, rule, admissible, guess):
        return np.full((which.stop - which.start, 5), -1.0 + 0.1 * self.fits), 0.0


@pytest.mark.parametrize(("reward_max", "last"), [(-0.1, -0.9), (0.1, -0.6)])
def test_errors_raise_no_value_where_exact_ceilings_only_fall(rows, reward_max, last):
    settings = Settings(reward_bound=reward_max, horizon=4).checked(rows.sources)
    some = np.arange(len(rows.observations))
    found = sweep(Rising(), rows, settings, some, False, progress=no_progress, what="")
    assert found.values[-1] == pytest.approx(last)


def test_distinct_observations_are_those_of_the_rows(rows):
    merged, place = rows.distinct()
    assert len(np.unique(merged.observations, axis=0)) == len(merged.observations) < len(rows.observations)
    assert np.array_equal(merged.observations[place], rows.observations)
    assert np.array_equal(merged.observations[merged.state], rows.observations[rows.state])
    known = rows.next_state >= 0
    assert np.array_equal(merged.next_state >= 0, known)
    assert np.array_equal(merged.observations[merged.next_state[known]], rows.observations[rows.next_state[known]])
