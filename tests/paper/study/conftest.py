"""A small study, run once for all that look at it."""

from functools import cache

import pytest
from shared import shared_folder

from causal_shaping.paper.study import figures, tables
from causal_shaping.paper.study.plan import Plan
from causal_shaping.paper.study.report import write_report
from causal_shaping.paper.study.run import load_results, run_study


@pytest.fixture(scope="session", autouse=True)
def one_robot():
    """Tables of the walking robot, which no results change, are computed once in a process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "robot_tables", cache(tables.robot_tables))
        yield


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Results of a quick run in two worlds, without BCQ, and their report, its figures in one format only."""
    plan = Plan(seeds=3, quick=True, deep=False, only={"world": ["lavacross-easy", "lavacross-hard"]})
    with shared_folder(tmp_path_factory, "study") as (folder, empty), pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "FORMATS", (".svg",))
        if empty:
            write_report(run_study(plan, folder, workers=1), workers=1)
    return load_results(folder)
