"""What tools claim of LaLonde's job training from the survey, beside plain computations on the same men."""

import numpy as np
import pytest

pytest.importorskip("causaldata")

from studies.field import lalonde

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
OUTCOMES = ("earnings", "employed")


@pytest.fixture(scope="module")
def claims():
    return {row["claim"]: row for row in lalonde.claims()}


def test_the_truth_is_what_the_trial_shows(claims):
    men, _ = lalonde._people()
    assert len(men) == 445
    for outcome in OUTCOMES:
        for action, treat in (("training", 1), ("none", 0)):
            earned = men.re78[men.treat == treat]
            truth = earned.mean() if outcome == "earnings" else (earned > 0).mean()
            assert claims[f"means of the logs: {outcome}, {action}"]["truth"] == pytest.approx(truth)


def test_means_and_regressions_are_those_of_least_squares(claims):
    men, logs = lalonde._people()
    trained = (logs.treat == 1).to_numpy(float)
    table = np.column_stack([np.ones(len(logs)), trained, logs[list(lalonde.COVARIATES)].to_numpy(float)])
    for outcome in OUTCOMES:
        weights = np.linalg.lstsq(table, logs[outcome].to_numpy(float), rcond=None)[0]
        for action, given in (("training", 1.0), ("none", 0.0)):
            said = claims[f"regression on covariates: {outcome}, {action}"]
            at = np.concatenate([[1.0, given], men[list(lalonde.COVARIATES)].to_numpy(float).mean(axis=0)])
            assert (said["low"] + said["high"]) / 2 == pytest.approx(at @ weights, rel=1e-6)
            said = claims[f"means of the logs: {outcome}, {action}"]
            some = logs[outcome][trained == given]
            error = 1.96 * some.std() / len(some) ** 0.5
            assert said["low"] == pytest.approx(some.mean() - error, rel=1e-4)
            assert said["high"] == pytest.approx(some.mean() + error, rel=1e-4)


def test_believing_the_survey_misleads_and_bounds_that_allow_for_anything_do_not_where_trained_men_are_the_same(claims):
    """The survey holds other people: what it shows of those who were not trained is true of them alone."""
    assert claims["means of the logs: earnings, none"]["violations"] == 1
    for outcome in OUTCOMES:
        assert claims[f"bounds, any confounding: {outcome}, training"]["violations"] == 0
        wide, narrow = (claims[f"bounds, {gamma}: {outcome}, training"] for gamma in ("any confounding", "Gamma 1"))
        assert wide["low"] <= narrow["low"] < narrow["high"] <= wide["high"]
        with_trial = claims[f"bounds with the trial, logs at Gamma 1: {outcome}, none"]
        assert with_trial["low"] is None
        assert with_trial["violations"] is None
