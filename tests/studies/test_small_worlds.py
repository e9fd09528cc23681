"""Small worlds with rare outcomes: limits hold in a few samples, and the worlds are what they are said to be."""

import numpy as np
import pytest
from independent import rows, sampled_rows, true_gamma

from studies.calibration.validity import covered
from studies.worlds.small import WORLDS

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")


@pytest.mark.parametrize("name", WORLDS)
def test_limits_hold_in_small_worlds_with_rare_outcomes(name):
    """A few samples only: `make calibrate` takes 400 of each."""
    found = covered(name, samples=4)["settings"]
    for key in (key for key in found if "plug-in" not in key and "default" not in key):
        assert found[key]["ceilings"] == found[key]["floors"] == found[key]["masks"] == 1, key
        assert found[key]["distance"] >= 0


@pytest.mark.parametrize("name", WORLDS)
def test_samples_converge_to_the_masses(name):
    small = WORLDS[name]()
    for source, demonstrator in small.demonstrators.items():
        n = 2_000
        masses = rows(small.world, demonstrator)
        sample = sampled_rows(small.world, demonstrator, n, np.random.default_rng(0))
        assert set(sample) <= set(masses)
        for row, mass in masses.items():
            spread = np.sqrt(mass * n) + 3
            assert abs(sample.get(row, 0) - mass * n) < 5 * spread, (source, row)


def test_only_the_blind_demonstrator_is_unconfounded():
    for name, made in WORLDS.items():
        if name == "raffle":  # which leaves nothing to choose
            continue
        small = made()
        gammas = {who: true_gamma(small.world, d, small.step_indexed) for who, d in small.demonstrators.items()}
        assert gammas["blind"] == pytest.approx(1.0), name
        assert min(gammas["good"], gammas["bad"]) > 2, name
