"""A small study, run once for all that look at it."""

import pytest

from causal_shaping.paper.study.plan import Plan
from causal_shaping.paper.study.report import write_report
from causal_shaping.paper.study.run import run_study


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Results of a quick run in two worlds, without BCQ, and their report."""
    plan = Plan(seeds=3, quick=True, deep=False, only={"world": ["lavacross-easy", "lavacross-hard"]})
    results = run_study(plan, tmp_path_factory.mktemp("study"), workers=1)
    write_report(results, workers=1)
    return results
