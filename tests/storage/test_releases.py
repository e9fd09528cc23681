"""Files that releases wrote are read as they were, or refused by name, for ever.

`python tests/storage/test_releases.py 0.2` keeps files of the present version in
`tests/storage/releases/0.2`; what lies there is never changed.
"""

import json
import shutil
import sys
from pathlib import Path

import kinds
import pytest

from causal_shaping.errors import FileError

HERE = Path(__file__).parent
RELEASES = HERE / "releases"
REFUSED: dict[str, tuple[str, ...]] = {}
"""The kinds of a release that are no longer read."""


@pytest.mark.parametrize("kind", kinds.KINDS)
@pytest.mark.parametrize("release", sorted(path.parent.name for path in RELEASES.glob("*/read.json")))
def test_files_of_a_release_are_read_or_refused_by_name(release, kind, tmp_path):
    folder = shutil.copytree(RELEASES / release / kind, tmp_path / "held")
    known = json.loads((RELEASES / release / "read.json").read_text())[kind]
    if kind in REFUSED.get(release, ()):
        with pytest.raises(FileError, match="Make it again with"):
            kinds.read(kind, folder)
    else:
        assert kinds.read(kind, folder) == known


def keep(release):
    """Keep a file of each kind, and what is read from it."""
    folder = RELEASES / release
    folder.mkdir(parents=True)
    read = {}
    for kind in kinds.KINDS:
        (folder / kind).mkdir()
        kinds.make(kind, folder / kind)
        read[kind] = kinds.read(kind, folder / kind)
    (folder / "read.json").write_text(json.dumps(read, indent=1) + "\n")


if __name__ == "__main__":
    keep(sys.argv[1])
