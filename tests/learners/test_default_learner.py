"""A potential without a learner: the default learner can lock in, and `train` says so once."""

import warnings

import pytest

import causal_shaping as cs
from causal_shaping.learners.rules import CAN_LOCK_IN

EASY = cs.load_world("lavacross-easy")
COUNTS = cs.count([EASY.collect(name, 20_000) for name in ("bad", "random")])
CEILINGS = cs.value_ceilings(COUNTS, EASY.horizon, -0.1)
BELIEF = cs.posterior(COUNTS, EASY.horizon, -0.1)
ZERO = cs.Potential.zero(EASY)


def warned(call):
    """Return the warnings about the default learner that a call gives, in all its threads."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [one for one in caught if "Without a learner" in str(one.message)]


def train(potential=None, **options):
    return warned(lambda: cs.train(EASY, potential, steps=200, **options))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("given", [CEILINGS, CEILINGS.potential(step_indexed=False), ZERO])
def test_a_potential_without_a_learner_is_warned_of_once_where_train_was_called(given, compiled):
    (found,) = train(given, compiled=compiled)
    assert str(found.message) == CAN_LOCK_IN
    assert found.category is cs.ShapingWarning
    assert found.filename == __file__


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (None, {}),
        (None, {"learner": "q-ucb-shaping"}),
        (BELIEF, {}),
        (BELIEF, {"learner": "posterior"}),
        (CEILINGS, {"learner": "q-ucb-shaping"}),
        (CEILINGS, {"learner": "q-ucb-shaping", "bonus": 0.0, "clip": "zero"}),
        (CEILINGS, {"learner": "q-ucb"}),
        (CEILINGS, {"learner": cs.Rule()}),
        (ZERO, {"learner": "q-ucb-shaping"}),
    ],
)
def test_a_named_learner_a_posterior_and_nothing_at_all_are_silent(tmp_path, given, options):
    assert train(given, **options) == []
    kept = {"steps": 200, "seeds": range(2), "folder": tmp_path} | options
    assert warned(lambda: cs.train_seeds(EASY, given, **kept)) == []


@pytest.mark.parametrize("given", [CEILINGS, ZERO])
def test_many_seeds_are_warned_of_once(tmp_path, given):
    options = {"steps": 200, "seeds": range(6), "folder": tmp_path}
    (found,) = warned(lambda: cs.train_seeds(EASY, given, **options))
    assert str(found.message) == CAN_LOCK_IN
    assert found.filename == __file__
    # A folder whose seeds are all there already still answers from the learner that can lock in.
    assert len(warned(lambda: cs.train_seeds(EASY, given, **options))) == 1


def test_what_cannot_be_learned_is_refused_without_a_warning():
    def call():
        with pytest.raises(cs.ArgumentError, match="The ceilings are of 20 steps"):
            cs.train(EASY, CEILINGS, horizon=5)

    assert warned(call) == []
