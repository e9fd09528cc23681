"""What is not installed is named at once, and only what needs it asks for it."""

import forked
import pytest

BLOCKED = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Missing())
from causal_shaping import MissingExtraError
try:
    {statement}
except MissingExtraError as error:
    print(error.extra)
else:
    print("fine")
"""


def outcome(statement, *missing):
    """Run a statement in a process of its own in which some packages are missing."""
    script = BLOCKED.format(missing=missing, statement=statement)
    return forked.run(script, prepared=forked.REQUIRED).stdout.strip()


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_the_study_asks_for_its_extra_when_it_is_imported(package):
    assert outcome("import studies.paper.plan", package) == "studies"
