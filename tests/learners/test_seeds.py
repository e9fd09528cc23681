"""Many seeds: kept in a folder, resumed after a kill at any moment, none counted twice."""

import json

import gymnasium as gym
import numpy as np
import pyarrow.parquet as pq
import pytest
from killing import killed_five_times
from long_seeds import STEPS, kept, train_long
from matplotlib.figure import Figure

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, FileError
from causal_shaping.learners.seeds import optimal_ratios
from causal_shaping.plot import draw

EASY = cs.load_world("lavacross-easy")
PHI = cs.Potential.zero(EASY)


def seeds_of(folder, seeds=range(4), **options):
    return cs.train_seeds(EASY, PHI, learner="q-ucb-shaping", steps=500, seeds=seeds, folder=folder, **options)


def test_seeds_are_those_of_train_and_are_kept(tmp_path):
    told = []
    found = seeds_of(tmp_path / "runs", progress=lambda done, total, what: told.append((done, total, what)))
    assert told[0] == (0, 4, "q-ucb-shaping in lavacross-easy")
    assert told[-1][:2] == (4, 4)
    for result in found.results:
        run = cs.train(EASY, PHI, learner="q-ucb-shaping", steps=500, seed=result.seed)
        assert result.regret == run.step_regret[-1]
        episodes = pq.read_table(tmp_path / "runs" / f"seed-{result.seed}.parquet")
        assert episodes["return"].to_pylist() == run.returns.tolist()
        table = pq.read_table(tmp_path / "runs" / f"seed-{result.seed}-table.parquet")
        assert table["q_value of 0 (up)"].to_pylist() == run.q_values[:, 0].tolist()
    mean, low, high = found.interval("regret")
    assert low <= mean <= high
    assert len(draw(found, Figure()).lines) == 1


def test_seeds_show_themselves_as_a_line_a_text_and_a_table(tmp_path):
    found = seeds_of(tmp_path)
    regret = found.interval("regret")[0]
    assert repr(found) == f"Seeds(q-ucb-shaping in lavacross-easy, 500 steps, 4 seeds, mean regret {regret:.4g})"
    assert f"regret: {regret:.4g} (" in found.summary()
    frame = found.to_pandas()
    assert frame["seed"].tolist() == [0, 1, 2, 3]
    assert frame["regret"].mean() == pytest.approx(regret)
    assert "curve" not in frame.columns
    assert "<td>3</td>" in found._repr_html_()


def test_seeds_of_the_learner_that_samples_are_kept_with_what_it_started_from(tmp_path):
    sources = [EASY.model.observe(EASY.demonstrators[name], name) for name in ("good", "bad")]
    belief = cs.posterior(sources, EASY.horizon, -0.1)
    options = {"steps": 300, "seeds": [3], "learner": "posterior"}
    found = cs.train_seeds(EASY, belief, folder=tmp_path / "logs", **options)
    assert found.results[0].regret == cs.train(EASY, belief, steps=300, seed=3).step_regret[-1]
    assert found.settings["rule"] is None
    assert found.settings["potential"] == belief.checksum
    without = cs.train_seeds(EASY, folder=tmp_path / "none", **options)
    assert without.results[0].regret == cs.train(EASY, learner="posterior", steps=300, seed=3).step_regret[-1]
    with pytest.raises(FileError):
        cs.train_seeds(EASY, belief, folder=tmp_path / "none", **options)


def test_the_learner_of_seeds_is_the_recommended_one_unless_one_is_named(tmp_path):
    sources = [EASY.model.observe(EASY.demonstrators[name], name) for name in ("good", "bad")]
    ceilings, folder = cs.value_ceilings(sources, 20, -0.1), tmp_path / "ceilings"
    with pytest.warns(cs.ShapingWarning, match=r"^Without a learner"):
        with_ceilings = cs.train_seeds(EASY, ceilings, steps=200, seeds=[0], folder=folder)
    assert with_ceilings.settings["learner"] == "q-ucb-shaping"
    own = cs.train_seeds(EASY, learner=cs.Rule(c=2.0), steps=200, seeds=[0], folder=tmp_path / "own")
    assert own.settings["learner"] == "custom"
    with pytest.raises(ArgumentError, match="is no potential"):
        cs.train_seeds(EASY, 3.0, steps=200, seeds=[0], folder=tmp_path / "none")


def test_what_is_done_is_not_run_again(tmp_path):
    first = seeds_of(tmp_path)
    stamps = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("seed-?.parquet")}
    (tmp_path / "seed-2.parquet").unlink()
    again = seeds_of(tmp_path, range(5))
    assert [result.seed for result in again.results] == [0, 1, 2, 3, 4]
    assert again.results[:4] == first.results
    for name, stamp in stamps.items():
        assert ((tmp_path / name).stat().st_mtime_ns == stamp) == (name != "seed-2.parquet")


def test_a_folder_with_other_runs_is_refused(tmp_path):
    seeds_of(tmp_path)
    with pytest.raises(FileError, match="holds runs with another potential"):
        cs.train_seeds(EASY, PHI.shifted(1.0), learner="q-ucb-shaping", steps=500, seeds=range(4), folder=tmp_path)
    with pytest.raises(FileError, match="another learner, rule"):
        cs.train_seeds(EASY, PHI, learner="q-ucb", steps=500, seeds=range(4), folder=tmp_path)
    with pytest.raises(FileError, match="another rule"):
        seeds_of(tmp_path, c=1.0)
    for other in (
        cs.load_world("lavacross-easy", horizon=19),
        cs.load_world("lavacross-easy", wind=(0, 0.5, 0, 0, 0.5)),
    ):
        with pytest.raises(FileError, match="another tables"):
            cs.train_seeds(other, PHI, learner="q-ucb-shaping", steps=500, seeds=range(4), folder=tmp_path)
    (tmp_path / "settings.json").unlink()
    with pytest.raises(FileError, match="holds runs without settings"):
        seeds_of(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="is a file"):
        seeds_of(tmp_path / "file")
    with pytest.raises(ArgumentError, match="no seeds"):
        seeds_of(tmp_path / "none", [])


def test_a_call_that_fails_does_not_lock_the_folder(tmp_path):
    by_step = cs.Potential(np.zeros((20, len(EASY.states))), EASY)
    options = {"steps": 500, "seeds": range(2), "folder": tmp_path}
    with pytest.raises(ArgumentError, match="has steps and the learner has not"):
        cs.train_seeds(EASY, by_step, learner="q-ucb-shaping", **options)
    assert len(seeds_of(tmp_path).results) == 4


def test_an_environment_that_differs_is_another(tmp_path):
    for slippery in (True, False):
        lake = gym.make("FrozenLake-v1", is_slippery=slippery)
        if slippery:
            cs.train_seeds(lake, None, learner="q-ucb-shaping", steps=100, seeds=[0], folder=tmp_path)
        else:
            with pytest.raises(FileError, match="another tables"):
                cs.train_seeds(lake, None, learner="q-ucb-shaping", steps=100, seeds=[0], folder=tmp_path)


def test_a_second_one_in_a_folder_is_refused_and_disturbs_nothing(tmp_path):
    def progress(done, total, what):
        if done == 1:
            with pytest.raises(FileError, match="Another process works in"):
                seeds_of(tmp_path, range(6))

    assert seeds_of(tmp_path, range(6), progress=progress).results == seeds_of(tmp_path, range(6)).results


def test_a_seed_that_cannot_be_read_is_named(tmp_path):
    seeds_of(tmp_path)
    (tmp_path / "seed-1.parquet").write_text("cut")
    with pytest.raises(FileError, match=r"seed-1.parquet is not a complete Parquet file.*Remove it"):
        seeds_of(tmp_path)


def test_the_result_of_a_seed_cannot_be_edited(tmp_path):
    seeds_of(tmp_path)
    path = tmp_path / "seed-1.parquet"
    held = pq.read_table(path)
    about = json.loads(held.schema.metadata[b"causal_shaping"])
    about["result"]["regret"] = 0.0
    keys = held.schema.metadata | {b"causal_shaping": json.dumps(about)}
    pq.write_table(held.replace_schema_metadata(keys), path)
    with pytest.raises(FileError, match=r"seed-1.parquet was changed after it was written.*Remove it"):
        seeds_of(tmp_path)


def test_a_kill_at_any_moment_loses_no_finished_seed(tmp_path):
    """Killed five times on the way; what is there afterwards is what an undisturbed run gives."""
    done = killed_five_times(train_long, tmp_path, kept, 4, modules=("pyarrow.parquet", "causal_shaping.learners"))
    assert done == sorted(done)
    before = {path: path.read_bytes() for path in kept(tmp_path)}
    found = train_long(tmp_path).results
    assert [result.seed for result in found] == list(range(12))
    assert {path: path.read_bytes() for path in before} == before
    assert found[7].regret == cs.train(EASY, None, steps=STEPS, seed=7).step_regret[-1]


def test_environments_run_too_and_regret_is_not_made_up(tmp_path):
    lake = gym.make("FrozenLake-v1")
    found = cs.train_seeds(lake, None, learner="q-ucb-shaping", steps=300, seeds=range(2), folder=tmp_path)
    assert found.interval("regret") is None
    assert found.interval("mean_return") is not None
    with pytest.raises(ArgumentError, match="is not known"):
        draw(found, Figure())


def test_ratios_of_optimal_actions_are_of_tables_without_steps(tmp_path):
    for by_step in (False, True):
        found = cs.train_seeds(EASY, None, steps=500, seeds=[0], step_indexed=by_step, folder=tmp_path / str(by_step))
        run = cs.train(EASY, None, steps=500, step_indexed=by_step)
        match = None if by_step else optimal_ratios(EASY.model, run.recommended)
        assert match == (None if by_step else (found.results[0].argmax_match, found.results[0].optimal))
        assert (found.results[0].optimal is None) == by_step
