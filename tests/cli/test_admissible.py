"""`--admissible FILE`: actions that do not exist in every state, from the logs to the learner."""

import json

import numpy as np
import pandas as pd
import pytest

import causal_shaping as cs

BOUND = ("--horizon", "3", "--reward-max", "1", "--support", "any")


@pytest.fixture
def ward(tmp_path):
    """Logs of a ward in which rest exists in every stage, surgery in the late ones, and a drug that nobody gave."""
    rng = np.random.default_rng(0)
    stage = rng.integers(3, size=300)
    rows = {"episode": np.arange(300), "step": 0, "stage": stage, "sex": rng.choice(["f", "m"], 300)}
    rows |= {"treatment": np.where((stage > 0) & (rng.random(300) < 0.5), "surgery", "rest")}
    rows |= {"reward": rng.integers(2, size=300), "terminated": True}
    pd.DataFrame(rows).to_csv(tmp_path / "ward.csv", index=False)
    pairs = [(0, sex, name) for sex in "fm" for name in ("rest",)] + [(9, "f", "rest")]
    pairs += [(1, sex, name) for sex in "fm" for name in ("rest", "surgery")]
    frame = pd.DataFrame(pairs, columns=["stage", "sex", "treatment"])[["treatment", "sex", "stage"]]
    frame.to_csv(tmp_path / "exists.csv", index=False)
    frame.astype({"stage": float}).to_parquet(tmp_path / "exists.parquet")
    return tmp_path


COLUMNS = ("--state", "stage,sex", "--action", "treatment", "--actions", "rest,surgery,drug")
ALL = {"rest", "surgery", "drug"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ceilings_and_counts_hold_the_admissible_actions_of_a_file(done, ward, ending):
    files = ("--admissible", ward / f"exists.{ending}", "-o", ward / "phi.parquet", "--counts", ward / "counts.parquet")
    done("ceilings", ward / "ward.csv", *COLUMNS, *BOUND, *files)
    for space in (cs.Ceilings.load(ward / "phi.parquet").space, cs.Counts.load(ward / "counts.parquet").space):
        held = {state: set(space.admissible.get(state, ALL)) for state in space.states}
        assert held == {(stage, sex): [{"rest"}, {"rest", "surgery"}, ALL][stage] for stage in range(3) for sex in "fm"}


def test_inspect_and_sensitivity_take_the_file(done, ward):
    done("inspect", ward / "ward.csv", *COLUMNS, "--admissible", ward / "exists.csv", "--json")
    options = (*COLUMNS, *BOUND, "--reward-min", "0", "--confidence", "0.95", "--admissible", ward / "exists.csv")
    out = done("sensitivity", ward / "ward.csv", *options, "--json")
    assert json.loads(out)


def test_files_that_do_not_fit_are_refused(refused, ward):
    def told(frame, *options):
        frame.to_csv(ward / "wrong.csv", index=False)
        return refused("inspect", ward / "ward.csv", *options, "--admissible", ward / "wrong.csv")

    exists = pd.read_csv(ward / "exists.csv")
    assert "has no column 'treatment'" in told(exists.rename(columns={"treatment": "drug"}), *COLUMNS)
    assert "names no state that is known" in told(exists.assign(stage=7), *COLUMNS)
    assert "has no rows" in told(exists.head(0), *COLUMNS)
    more = pd.concat([exists, pd.DataFrame([{"stage": 1, "sex": "f", "treatment": "drug"}])])
    assert "--actions rest,surgery,drug" in told(more, *COLUMNS[:-2])
    assert "not admissible" in told(exists.query("treatment == 'rest'"), *COLUMNS)
