"""`causal-shaping fit`: what it prints and writes, what it refuses, and that a kill loses at most a step."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
from point_robot import LARGEST_RETURN, STATE, logs_of

import causal_shaping as cs
from causal_shaping.fitted import FittedFloors

BOUNDED = ("--state", "x,y", "--horizon", 8, "--reward-max", -0.1)


@pytest.fixture(scope="module")
def field(tmp_path_factory):
    """Logs of two demonstrators of the windy field, as files."""
    folder = tmp_path_factory.mktemp("field")
    world = cs.load_world("windy-field")
    for name in ("good", "random"):
        pq.write_table(world.collect(name, 1000, seed=0), folder / f"{name}.parquet")
    return [folder / "good.parquet", folder / "random.parquet"]


def arrays_of(folder):
    with np.load(folder / "fitted.npz") as held:
        return dict(held)


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_the_fit_is_that_of_the_library_and_says_how_far_to_trust_it(done, field, tmp_path):
    picture = tmp_path / "phi.png"
    out = done("fit", *field, *BOUNDED, "--members", 1, "-o", tmp_path / "phi", "--png", picture)
    assert [item.name for item in sorted((tmp_path / "phi").iterdir())] == ["fitted.json", "fitted.npz"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    for words in ("of the differences in value", "It assumes:", "Rewards never exceed -0.1.", "ShapeReward(env, "):
        assert words in out
    fitted = cs.fit_ceilings(field, state=["x", "y"], horizon=8, reward_max=-0.1, members=1, save=tmp_path / "own")
    assert same(arrays_of(tmp_path / "phi"), arrays_of(tmp_path / "own"))
    assert str(cs.load_potential(tmp_path / "phi").fitted) == str(fitted)


def test_floors_and_json(done, field, tmp_path):
    given = ("--state", "x,y", "--horizon", 8, "--members", 1, "-o", tmp_path / "low", "--json")
    out = done("fit", *field, *given, "--floors", "--reward-min", -1.1)
    found = json.loads(out)
    assert (found["kind"], found["settings"]["reward_bound"]) == ("fitted floors", -1.1)
    assert found["rows"] == {"good": 1000, "random": 1000}
    assert isinstance(FittedFloors.load(tmp_path / "low"), FittedFloors)


def test_of_rewards_above_0_it_says_that_the_fit_is_coarse_and_offers_no_shaping(done, tmp_path):
    for operator in ("skilled", "random"):
        pq.write_table(logs_of(operator, 1000), tmp_path / f"{operator}.parquet")
    files = sorted(tmp_path.glob("*.parquet"))
    bounded = ("--state", ",".join(STATE), "--horizon", 2, "--reward-max", LARGEST_RETURN)
    out = done("fit", *files, *bounded, "--members", 1, "-o", tmp_path / "phi")
    told = " ".join(out.split())
    assert "Fits with rewards above 0 are coarse in this version: ceilings may hardly tell" in told
    assert "Do not use it as a potential for a deep agent yet: fits with rewards above 0" in told
    assert "ShapeReward" not in out


def test_a_killed_fit_goes_on_and_ends_as_one_that_was_not(done, refused, field, tmp_path):
    command = ("fit", *field, *BOUNDED[:2], "--horizon", 6, "--reward-max", -0.1, "--members", 2)
    kept = tmp_path / "phi" / ".unfinished"
    arguments = [sys.executable, "-m", "causal_shaping", *map(str, command), "-o", str(tmp_path / "phi")]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    while process.poll() is None and not any(kept.glob("member-0-*.npz")):
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"
    assert not (tmp_path / "phi" / "fitted.json").exists()
    with np.load(next(kept.glob("member-0-*.npz"))) as held:
        assert held["left"] >= 1

    assert "another settings" in refused(*command, "--seed", 1, "-o", tmp_path / "phi")
    done(*command, "-o", tmp_path / "phi")
    assert not kept.exists()
    done(*command, "-o", tmp_path / "whole")
    assert same(arrays_of(tmp_path / "phi"), arrays_of(tmp_path / "whole"))


def test_a_fit_takes_up_what_was_kept(done, field, tmp_path):
    """The pass that goes on begins where the kept one stopped, instead of anew."""
    asked = {"state": ["x", "y"], "horizon": 8, "reward_max": -0.1, "members": 1, "folder": tmp_path / "kept"}

    def stop(done, total, what):
        if what.startswith("Fitting") and done > 0.25:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cs.fit_ceilings(field, **asked, progress=stop)
    after = []
    cs.fit_ceilings(field, **asked, progress=lambda done, total, what: after.append((done, what)))
    assert next(done for done, what in after if what.startswith("Fitting")) >= 0.2


def test_a_folder_with_other_things_in_it_is_refused(refused, field, tmp_path):
    (tmp_path / "thesis.tex").touch()
    assert "holds thesis.tex, which is no part of a fit." in refused("fit", *field, *BOUNDED, "-o", tmp_path)
    assert "is a file" in refused("fit", *field, *BOUNDED, "-o", tmp_path / "thesis.tex")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--state", "x,y", "--reward-max", 0), "horizon is missing: set it to the steps of an episode"),
        (("--state", "x,y", "--horizon", 5), "Give --reward-max for ceilings, or --floors --reward-min for floors."),
        ((*BOUNDED, "--reward-min", -1), "Give --reward-max for ceilings, or --floors --reward-min for floors."),
        ((*BOUNDED, "--expectile", 2), "expectile is 2.0; it must be from 0.5 to 1."),
        ((*BOUNDED, "--members", 0), "members is 0"),
        (("--state", "x,y", "--horizon", 5, "--reward-max", -0.2), "reward_max is -0.2, but source"),
        (("--state", "x,z", "--horizon", 5, "--reward-max", 0), "'z'"),
    ],
)
def test_what_cannot_be_is_refused_in_words_of_the_command(refused, field, tmp_path, options, expected):
    err = refused("fit", *field, *options, "-o", tmp_path / "phi")
    assert expected in err
    assert err.count("\n") == 1
    assert not (tmp_path / "phi" / "fitted.json").exists()


def test_logs_of_a_continuous_world_are_collected_and_its_states_are_not_listed(done, refused, tmp_path):
    path = tmp_path / "good.csv"
    out = done("collect", "windy-field", "--demonstrator", "good", "--steps", 300, "-o", path)
    assert "300 steps" in out
    assert path.read_text().startswith('"source","episode","step","x","y"')
    errors = refused("worlds", "windy-field")
    assert "cannot be listed" in errors
    assert "causal-shaping fit" in errors
