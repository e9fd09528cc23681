"""Files that releases wrote are read as they were, or refused by name, for ever.

`python tests/io/test_releases.py 0.2` keeps files of the present version in `tests/io/releases/0.2`; what lies there is
never changed.
"""

import json
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RELEASES = HERE / "releases"
KINDS = ("logs", "counts", "ceilings", "potential", "posterior", "sensitivity", "training run", "fitted forest")
REFUSED: dict[str, tuple[str, ...]] = {}
"""The kinds of a release that are no longer read."""
sys.path.append(str(HERE.parents[1] / "attack"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("release", sorted(path.parent.name for path in RELEASES.glob("*/read.json")))
def test_files_of_a_release_are_read_or_refused_by_name(release, kind, tmp_path):
    import files

    from causal_shaping.errors import FileError

    folder = shutil.copytree(RELEASES / release / kind, tmp_path / "held")
    known = json.loads((RELEASES / release / "read.json").read_text())[kind]
    if kind in REFUSED.get(release, ()):
        with pytest.raises(FileError, match="this package reads"):
            files.KINDS[kind].read(folder)
    else:
        assert files.fingerprint(files.KINDS[kind].read(folder)) == known


def keep(release):
    """Keep a file of each kind, and what is read from it."""
    import files

    folder = RELEASES / release
    folder.mkdir(parents=True)
    read = {}
    for kind in KINDS:
        (folder / kind).mkdir()
        files.KINDS[kind].make(folder / kind)
        read[kind] = files.fingerprint(files.KINDS[kind].read(folder / kind))
    (folder / "read.json").write_text(json.dumps(read, indent=1) + "\n")


if __name__ == "__main__":
    keep(sys.argv[1])
