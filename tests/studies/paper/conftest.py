"""A small study, run once for all that look at it."""

import pytest
from brief_report import shorten
from shared import shared_folder

from studies import pages
from studies.paper.plan import Plan
from studies.paper.report import write_report
from studies.paper.run import merge, run_study


@pytest.fixture(scope="session", autouse=True)
def brief():
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        yield


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Results of a quick run in two worlds, without BCQ, and their report, its figures in one format only."""
    plan = Plan(seeds=3, quick=True, deep=False, only={"world": ["lavacross-easy", "lavacross-hard"]})
    with shared_folder(tmp_path_factory, "study") as (folder, empty), pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "FORMATS", (".svg",))
        if empty:
            write_report(run_study(plan, folder, workers=1), workers=1)
    return merge(folder)
