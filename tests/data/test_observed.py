"""Transitions and potentials over observations: what they refuse, and how they show themselves."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, DataError, UnknownNameError

ROWS = pd.DataFrame({"episode": [0, 0, 1], "step": [0, 1, 0], "x": [0.5, 1.5, 2.5], "action": [0, 1, 0], "reward": 0.0})


class Sum(cs.ObservationPotential):
    """The sum of the coordinates."""

    def values(self, observations, h):
        return np.asarray(observations, dtype=float).sum(axis=tuple(range(1, 1 + len(self.shape))))


def transitions():
    return cs.read_transitions(cs.open_logs(ROWS, source="ward", state="x", numbers=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action": np.zeros(2, dtype=np.int16)}, "must be of one length"),
        ({"observations": np.zeros((3, 2), dtype=np.float32)}, r"have shape \(2,\) instead of \(1,\)"),
        ({"mask": np.ones((3, 5), dtype=bool)}, r"The mask has shape \(3, 5\)"),
    ],
)
def test_transitions_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(DataError, match=message):
        replace(transitions(), **changes)


def test_transitions_tell_what_they_hold():
    held = transitions()
    assert repr(held) == "Transitions(3 steps in 2 episodes of ward; states of shape (1,) by (x); 2 actions)"
    assert held.nbytes >= held.observations.nbytes + held.reward.nbytes
    with pytest.raises(UnknownNameError, match="no source 'clinic'"):
        held.rows_of("clinic")


def test_a_potential_over_observations_takes_one_or_many_and_says_what_it_is():
    phi = Sum(shape=(2,), low=[0.0, 1.0], columns=("x", "y"), origin="a sum", assumptions=("It is a sum.",))
    assert phi([1.0, 2.0]) == 3.0
    np.testing.assert_array_equal(phi(np.ones((3, 2))), [2.0, 2.0, 2.0])
    assert phi(np.zeros((0, 2))).shape == (0,)
    with pytest.raises(ArgumentError, match=r"Observations of shape \(3,\) do not fit"):
        phi([1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="Observation 1 holds what is not a number"):
        phi([[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(ArgumentError, match=r"low has shape \(1,\), but observations have \(2,\)"):
        Sum(shape=(2,), low=[0.0])
    assert phi.summary().splitlines()[1:] == ["It assumes:", "- It is a sum."]
    frame = phi.to_pandas()
    assert frame["coordinate"].tolist() == ["x", "y"]
    assert frame["low"].tolist() == [0.0, 1.0]
    assert frame["high"].isna().all()


@pytest.mark.parametrize(
    ("shape", "given", "advice"),
    [((4, 5, 3), (3, 4, 5), r"transpose\(1, 2, 0\)"), ((3, 4, 5), (4, 5, 3), r"transpose\(2, 0, 1\)")],
)
def test_images_with_their_channels_elsewhere_get_the_advice_to_move_them(shape, given, advice):
    with pytest.raises(ArgumentError, match=advice):
        Sum(shape=shape).check_observation(np.zeros(given, dtype=np.float32))
