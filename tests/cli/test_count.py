"""`causal-shaping count`: day by day, as a user would."""

import json
import re

import numpy as np
import pytest

import causal_shaping as cs


@pytest.fixture
def days(tmp_path):
    """Two days of a ward, as files with a column of real numbers."""
    random = np.random.default_rng(0)
    for day in (1, 2):
        rows = [
            f"{e},{h},{random.normal(60, 9):.3f},{random.choice(['mild', 'strong'])},{random.integers(0, 2)},{h == 2}"
            for e in range(60)
            for h in range(3)
        ]
        header = "patient,step,age,drug,reward,terminated"
        (tmp_path / f"{day}.csv").write_text("\n".join([header, *rows]).lower() + "\n")
    return tmp_path


COLUMNS = ("--episode", "patient", "--state", "age", "--action", "drug", "--bins", "age=3")


def test_days_are_counted_once_in_the_bins_of_the_first(run, days):
    path = days / "counts.parquet"

    def count(day, *more):
        return run("count", f"ward={days}/{day}.csv", "--part", f"day-{day}", "-o", path, *COLUMNS, *more)

    code, out, err = count(1)
    assert (code, err) == (0, "")
    assert "Counted day-1: 180 rows of ward" in out
    edges = cs.Counts.load(path).space.bins["age"].edges
    code, out, _ = count(2)
    assert code == 0
    assert "counts.parquet holds 2 parts: 360 rows of ward" in out
    held = cs.Counts.load(path)
    assert held.space.bins["age"].edges == edges
    assert held.n.sum() == 360
    written = path.read_bytes()
    code, out, _ = count(1, "--json")
    assert code == 0
    assert json.loads(out)["known"] == ["day-1"]
    assert path.read_bytes() == written
    (days / "1.csv").write_text((days / "1.csv").read_text().replace("strong", "mild"))
    code, _, err = count(1)
    assert code == 2
    assert "Part 'day-1' is in" in err
    assert "already, with other counts" in err
    assert "count all parts into a new file" in err
    assert path.read_bytes() == written


def test_what_is_given_must_make_sense(run, days):
    path = days / "counts.parquet"
    for more, told in (
        (("--part", "a", "-o", days / "1.csv"), "must end in .parquet"),
        (("--part", "a\nb", "-o", path), "part"),
        (("-o", path), "Missing option '--part'"),
        (("--part", "a", "-o", path, "--reward-bins", "x"), "write 3 for quantiles"),
    ):
        code, _, err = run("count", f"ward={days}/1.csv", *COLUMNS, *more)
        assert (code, path.exists()) == (2, False)
        assert told in err


def test_rewards_of_many_values_in_a_later_part_are_refused_with_the_option_to_use(run, days):
    path, many = days / "counts.parquet", days / "2.csv"
    header, *lines = many.read_text().splitlines()
    lines = [re.sub(r",[01](?=,[a-z]+$)", f",{i}.5", line) for i, line in enumerate(lines)]
    many.write_text("\n".join([header, *lines]) + "\n")
    assert run("count", f"ward={days}/1.csv", "--part", "a", "-o", path, *COLUMNS)[0] == 0
    code, _, err = run("count", f"ward={many}", "--part", "b", "-o", path, *COLUMNS)
    assert code == 2
    assert "Part 'b' has rewards of many values" in err
    assert "reward_bins" in err
