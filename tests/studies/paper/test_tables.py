"""Tables: the numbers of the results, for people and for other programs."""

from pathlib import Path

import numpy as np
import pytest

from studies.paper import robot
from studies.paper.run import Results
from studies.paper.tables import (
    Table,
    all_tables,
    printed_table,
    regret_table,
    relative_regret,
)


def row(name, seed, world="lavacross-easy", coins="standing", **more):
    given = {"world": world, "coins": coins, "name": name, "seed": seed, "steps": 100, "episodes": 10, "regret": 10.0}
    given |= {"argmax_match": 0.5, "optimal": 0.5, "final_return": -1.0, "score": 0.5, "steps_until": None}
    return {**given, "mean_return": -1.0, "policy": [0], "curve": [1.0], **more}


def results(*rows):
    return Results(Path("nowhere"), {"quick": False, "counted_in": "steps"}, rows, ())


def test_the_regret_of_a_row_is_the_mean_of_its_seeds(small):
    table = regret_table(small, "standing")
    for record in table.records:
        values = [one["regret"] for one in small.runs_of(record["world"], record["method"])]
        assert record["mean"] == pytest.approx(np.mean(values))
        assert record["low"] <= record["mean"] <= record["high"]
        assert [float(value) for value in record["by_seed"].split()] == pytest.approx(values, rel=1e-5)
    assert {one["coins"] for one in regret_table(small, "once").records} == {"once"}


def test_differences_to_print_are_ours_minus_theirs():
    table = printed_table(results(row("causal-bound", 0, argmax_match=0.9), row("causal-bound", 1, argmax_match=0.7)))
    (record,) = table.records
    assert record["printed"] == 0.70
    assert record["difference"] == pytest.approx(0.1)
    assert "printed 0.70, +0.10" in table.rows[0][1]


def test_regrets_of_different_seeds_are_paired_by_seed():
    found = results(
        *(row("zero", seed, regret=10.0 * (seed + 1)) for seed in (0, 1, 2)),
        *(row("joint", seed, regret=5.0 * (seed + 1)) for seed in (1, 2, 3)),
    )
    assert relative_regret(found, "lavacross-easy", "standing", "joint", "zero") == pytest.approx((0.5, 0.5, 0.5))
    apart = results(row("zero", 0, regret=10.0), row("joint", 1, regret=5.0))
    assert relative_regret(apart, "lavacross-easy", "standing", "joint", "zero")[0] == 0.5


def test_latex_signs_are_escaped():
    table = Table("x", "t", "c", ["", "50% & more_"], [["a\\b", "{1}\n#2 < 3"]], [])
    latex = table.to_latex()
    assert r"50\% \& more\_" in latex
    assert r"a\textbackslash{}b & \{1\}; \#2 \textless{} 3 \\" in latex


def test_results_of_one_method_alone_make_tables():
    tables = all_tables(results(row("zero", 0)))
    assert {"regret-standing", "optimal-share", "robot-optimum"} <= set(tables)
    assert {"relative-regret", "ablation", "optimal-ratios", "potentials"}.isdisjoint(tables)


@pytest.fixture(scope="module")
def robots():
    return {table.name: table for table in robot.robot_tables(seeds=5)}


def test_the_robots_optimal_values_are_the_printed_ones(robots):
    for record in robots["robot-optimum"].records:
        assert record["behavioural, unstable"] == pytest.approx(record["behavioural, printed, unstable"])
        assert record["behavioural, stable"] == pytest.approx(record["behavioural, printed, stable"])
        assert record["interventional, unstable"] == pytest.approx(record["interventional, printed, unstable"])
        assert record["interventional, stable"] == pytest.approx(record["interventional, printed, stable"])
