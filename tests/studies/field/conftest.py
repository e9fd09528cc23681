"""A small field study, run once for all that look at it."""

import pytest
from small_field import shrink

from studies.field import run as runs
from studies.field.page import write_field_page
from studies.field.plan import Plan


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Results of the small study, and their page."""
    with pytest.MonkeyPatch.context() as patched:
        shrink(patched)
        results, _ = runs.run_field(
            Plan(families=("random", "problems", "clinic")), tmp_path_factory.mktemp("field"), workers=1
        )
    write_field_page(results)
    return results
