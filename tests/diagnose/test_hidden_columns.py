"""What leaving out a logged column amounts to, against the definition of Gamma in worlds that are known."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from properties import fewer

import causal_shaping as cs
from causal_shaping.diagnose._standardised import p_value, tabulate
from causal_shaping.errors import ArgumentError, DataError

STATES, ACTIONS, VALUES, OUTCOMES = 4, 3, 3, 4


def known_world(rng, acts=0.8, happens=0.8, states=STATES):
    """Return the chances of (s, x, c, o) where actions and outcomes depend on s and c, as strongly as it says."""

    def chances(scores):
        return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)

    visits = rng.dirichlet(np.full(states, 3.0))[:, None, None, None]
    value = rng.dirichlet(np.full(VALUES, 5.0), states)[:, None, :, None]
    action = chances(rng.normal(size=(states, 1, ACTIONS)) / 2 + acts * rng.normal(size=(states, VALUES, ACTIONS)))
    scores = rng.normal(size=(states, ACTIONS, 1, OUTCOMES))
    outcome = chances(scores + happens * rng.normal(size=(states, ACTIONS, VALUES, OUTCOMES)))
    return visits * value * action.transpose(0, 2, 1)[..., None] * outcome


def definition(joint):
    """Return the log odds of x given its outcome over the odds given s alone, and weights, from Bayes' rule."""
    ratios, weights = [], []
    for s in range(joint.shape[0]):
        p_s = joint[s].sum()
        for x in range(ACTIONS):
            p_x = joint[s, x].sum() / p_s
            for o in range(OUTCOMES):
                p_do = 0.0
                for c in range(VALUES):
                    p_c = joint[s, :, c].sum() / p_s
                    p_do += p_c * joint[s, x, c, o] / joint[s, x, c].sum()
                given_o = joint[s, x, :, o].sum() / p_s / p_do  # P(x | s, o_x = o)
                ratios.append(math.log(given_o / (1 - given_o) / (p_x / (1 - p_x))))
                weights.append(p_s * p_x * (1 - p_x) * p_do)
    return np.array(ratios), np.array(weights)


def table_of(counts):
    s, x, c, o = np.nonzero(counts)
    return tabulate(s, x, c, o, counts[s, x, c, o].astype(float))


def frame_of(counts, rng):
    """Return logs of one step an episode: s and c in columns, o as the reward."""
    s, x, c, o = (np.repeat(part, counts[np.nonzero(counts)]) for part in np.nonzero(counts))
    frame = pd.DataFrame({"episode": rng.permutation(len(s)), "state": s, "action": x, "cause": c, "reward": o * 1.0})
    return frame.assign(step=0, terminated=True)


@fewer(20)
@given(st.integers(0, 10**6), st.floats(0, 1.5), st.floats(0, 1.5))
def test_ratios_are_those_of_the_definition(seed, acts, happens):
    joint = known_world(np.random.default_rng(seed), acts, happens)
    counts = np.round(joint * 1e13).astype(np.int64)  # so many that rounding and the prior weigh nothing
    found = table_of(counts).ties()
    ratios, weights = definition(joint)
    np.testing.assert_allclose(found.log_ratio, ratios, atol=1e-6)
    np.testing.assert_allclose(found.weight / found.weight.sum(), weights / weights.sum(), rtol=1e-5)
    assert found.without_overlap == 0


@pytest.mark.parametrize(("rows", "tolerance"), [(200_000, 0.04), (20_000, 0.12)])
def test_sampling_error_is_taken_off(rows, tolerance):
    rng = np.random.default_rng(1)
    errors, raw = [], []
    for _ in range(6):
        joint = known_world(rng, states=20)
        ratios, weights = definition(joint)
        order = np.argsort(np.abs(ratios))
        true = np.abs(ratios)[order][np.searchsorted(np.cumsum(weights[order]), 0.95 * weights.sum())]
        counts = rng.multinomial(rows, joint.ravel()).reshape(joint.shape)
        (found,) = cs.confounding_of(frame_of(counts, rng), "cause", source="ward", draws=19)
        errors.append(np.log(found.confounding) - true)
        raw.append(np.log(found.measured) - true)
        assert found.distinguishable
        assert found.by_chance < found.measured
    assert abs(np.mean(errors)) < tolerance
    assert abs(np.mean(errors)) < np.mean(raw)


@pytest.mark.parametrize(("acts", "happens"), [(0.0, 1.5), (1.5, 0.0)])
def test_a_column_that_ties_nothing_is_not_distinguished_from_one(acts, happens):
    """Outcomes that depend on it are no tie if actions do not, and the other way round."""
    rng, rejected = np.random.default_rng(2), 0
    for _ in range(40):
        joint = known_world(rng, acts, happens)
        table = table_of(rng.multinomial(1500, joint.ravel()).reshape(joint.shape))
        kinds = (table.without_outcome_tie, table.without_action_tie)
        p_values = [p_value(table.ties(), [draw(rng) for _ in range(39)]) for draw in kinds]
        rejected += max(p_values) <= 0.05
    assert rejected <= 6  # 2 expected at most; 7 or more of 40 happen once in 300 times


def ward(rows, seed, **columns):
    """Patients of whom the severe ones are treated more often and die more often."""
    rng = np.random.default_rng(seed)
    severe = rng.random(rows) < 0.5
    treated = rng.random(rows) < np.where(severe, 0.8, 0.2)
    died = rng.random(rows) < np.where(severe, 0.5, 0.1)
    frame = pd.DataFrame({"episode": np.arange(rows), "step": 0, "action": np.where(treated, "drug", "none")})
    frame = frame.assign(severe=severe, age=np.round(rng.normal(60, 12, rows), 1), unit=rng.integers(3, size=rows))
    return frame.assign(reward=-1.0 * died, terminated=True, **columns)


def test_hidden_severity_is_found_and_age_is_not():
    found = cs.confounding_of(ward(20_000, 0), ["severe", "age"], source="ward", state="unit")
    severe, age = found
    # Died after the drug: .8 * .5 + .2 * .1 = .42; would have died of it among the untreated: .2 * .5 + .8 * .1 = .18.
    assert severe.confounding == pytest.approx(0.42 / 0.18, rel=0.12)
    assert severe.distinguishable
    assert not age.distinguishable
    assert age.values == 5
    assert "ward: leaving out severe amounts to a confounding of 2." in found.summary()
    assert "ward: leaving out age cannot be distinguished from a confounding of 1" in found.summary()
    assert repr(found) == f"HiddenColumns(severe in ward {severe.confounding:.3g}, age in ward not above 1)"
    assert json.loads(found.to_json())[0]["p_value"] == severe.p_value
    assert list(found.to_pandas().column) == ["severe", "age"]


def test_a_part_of_the_state_is_left_out_of_it():
    frame = ward(20_000, 0)
    as_state = cs.confounding_of(frame, "severe", source="ward", state=["unit", "severe"])
    beside = cs.confounding_of(frame, "severe", source="ward", state="unit")
    assert as_state[0].measured == pytest.approx(beside[0].measured)
    logs = cs.read_logs(frame.assign(severe=frame.severe.astype(int)), source="ward", state=["unit", "severe"])
    assert cs.confounding_of(logs, "severe")[0].measured == pytest.approx(beside[0].measured)
    alone = cs.confounding_of(frame, "severe", source="ward", state="severe")
    assert alone[0].measured == pytest.approx(0.42 / 0.18, rel=0.1)


def test_scale_and_offset_of_rewards_and_the_order_of_rows_do_not_matter():
    frame = ward(3000, 0)
    first = cs.confounding_of(frame, ["severe", "age"], source="ward", state="unit")
    other = frame.sample(frac=1, random_state=1).assign(reward=lambda held: 100 - 7 * held.reward)
    second = cs.confounding_of(other, ["severe", "age"], source="ward", state="unit")
    for one, two in zip(first, second, strict=True):
        assert one.measured == pytest.approx(two.measured)
        assert one.without_overlap == two.without_overlap


def test_sources_are_measured_one_by_one():
    frame = pd.concat([ward(4000, 0, source="ward"), ward(4000, 1, source="clinic")]).reset_index(drop=True)
    frame["episode"] = frame.index
    frame.loc[frame.source == "clinic", "action"] = np.random.default_rng(0).choice(["drug", "none"], 4000)
    found = {item.source: item for item in cs.confounding_of(frame, "severe", state="unit")}
    assert found["ward"].distinguishable
    assert not found["clinic"].distinguishable


def test_what_cannot_be_measured_is_said():
    frame = ward(2000, 0)
    frame["decides"] = frame.action
    found = cs.confounding_of(frame, "decides", source="ward", state="unit")
    assert math.isnan(found[0].confounding)
    assert found[0].without_overlap == 1
    assert "cannot be measured" in str(found)
    always = cs.confounding_of(frame.assign(action="drug"), "severe", source="ward", state="unit")
    assert math.isnan(always[0].confounding)
    frame["often"] = np.where(frame.action == "drug", "drug", frame.unit.astype(str))
    frame.loc[frame.index % 3 == 0, "often"] = "both"
    part = cs.confounding_of(frame, "often", source="ward", state="severe")
    assert "the action was never taken with the same value" in str(part)
    assert part[0].without_overlap == pytest.approx(2 / 3, abs=0.05)


def test_continuous_rewards_and_columns_with_gaps_are_cut():
    rng = np.random.default_rng(0)
    frame = ward(6000, 0)
    frame["reward"] += rng.normal(size=len(frame)) * 0.1
    frame["score"] = np.where(rng.random(len(frame)) < 0.3, np.nan, frame.severe + rng.normal(size=len(frame)) * 0.1)
    (found,) = cs.confounding_of(frame, "score", source="ward", state="unit")
    assert found.distinguishable
    assert found.values == 6  # five quantiles, and missing
    frame["score"] = frame.score.fillna(0.0)  # a third of the rows hold the same number: a bin of its own
    (held,) = cs.confounding_of(frame, "score", source="ward", state="unit")
    assert held.distinguishable


def test_columns_that_are_not_there_are_named():
    frame = ward(500, 0).assign(name=[f"patient {i}" for i in range(500)])
    with pytest.raises(ArgumentError, match=r"has no column 'sever'\. Did you mean 'severe'"):
        cs.confounding_of(frame, "sever", source="ward", state="unit")
    with pytest.raises(ArgumentError, match=r"name it in hidden"):
        cs.confounding_of(cs.open_logs(frame, source="ward", state="unit"), "severe")
    with pytest.raises(DataError, match="more than 100 different texts"):
        cs.confounding_of(frame, "name", source="ward", state="unit")
    with pytest.raises(ArgumentError, match="hidden names no column"):
        cs.confounding_of(frame, [], source="ward", state="unit")
    opened = cs.open_logs(frame, source="ward", state="unit", hidden=["severe"])
    assert cs.confounding_of(opened, "severe")[0].column == "severe"


def test_a_constant_column_hides_nothing():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"episode": range(400), "step": 0, "state": "s", "constant": "c", "terminated": True})
    frame["action"], frame["reward"] = rng.integers(2, size=400), rng.integers(3, size=400) / 7
    assert [item.p_value for item in cs.confounding_of(frame, ["constant"], source="ward", draws=19)] == [1.0]
