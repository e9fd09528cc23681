"""Running the study: nothing is lost, nothing is run twice, and it does not matter how often it was stopped."""

import pytest
from killing import finished, killed_five_times

from causal_shaping.errors import FileError
from studies.paper.plan import METHODS, Plan
from studies.paper.run import POTENTIALS, RESULTS, merge, run_study
from studies.parts import FILES

TINY = {"world": ["lavacross-easy"], "method": ["zero", "causal-bound", "joint"]}


def tiny(folder, **options):
    return run_study(Plan(**{"seeds": 2, "quick": True, "deep": False, "only": TINY, **options}), folder, workers=1)


def one_world(folder):
    """A quick run of one seed, without BCQ."""
    run_study(Plan(seeds=1, quick=True, deep=False, only={"world": ["lavacross-easy"]}), folder, workers=1)


def parts_of(folder):
    return sorted(folder.glob(FILES))


def test_a_quick_run_that_is_killed_five_times_ends_in_the_same_results(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finished(one_world, whole, modules=[run_study.__module__])
    done = killed_five_times(one_world, killed, parts_of, most=12, modules=[run_study.__module__])
    assert 0 < done[0] < done[-1] < len(parts_of(whole))
    finished(one_world, killed)
    for name in (RESULTS, POTENTIALS):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()


def test_what_is_done_is_not_done_again_and_more_is_added(tmp_path):
    first = tiny(tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in parts_of(tmp_path)}
    more = tiny(tmp_path, seeds=3, only={**TINY, "method": ["zero", "oracle"]})
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert {row["name"] for row in more.runs} == {"zero", "causal-bound", "joint", "oracle"}
    assert [row["seed"] for row in more.runs_of("lavacross-easy", "zero")] == [0, 1, 2]
    assert [row for row in more.runs if row in first.runs] == list(first.runs)
    names = [row["name"] for row in more.runs]
    assert names == sorted(names, key=list(METHODS).index)


def test_other_settings_and_broken_parts_are_refused(tmp_path):
    tiny(tmp_path)
    with pytest.raises(FileError, match="holds runs with another counted_in"):
        tiny(tmp_path, counted_in="episodes")
    part = parts_of(tmp_path)[0]
    part.write_text(part.read_text().replace('"seconds": ', '"seconds":  '))
    with pytest.raises(FileError, match=r"Remove it to run that part again"):
        merge(tmp_path)
    part.unlink()
    assert tiny(tmp_path).runs == merge(tmp_path).runs
