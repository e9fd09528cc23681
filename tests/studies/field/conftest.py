"""A small field study, run once for all that look at it."""

import pytest
from small_field import shrink

from studies.field.__main__ import write_field_page
from studies.field.plan import Plan
from studies.field.run import run_field


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Results of the small study, and their page."""
    with pytest.MonkeyPatch.context() as patched:
        shrink(patched)
        results, _ = run_field(Plan(families=("random", "problems", "clinic")), tmp_path_factory.mktemp("field"))
    write_field_page(results, ["mars: <b>not</b> installed"])
    return results
