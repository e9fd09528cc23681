"""The folder of the demo: a list in it names what the demo wrote; nothing else is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from causal_shaping.errors import FileError
from causal_shaping.storage import LOCK, TEMPORARY, check_folder, locked, read_json, write_json

LIST = "demo.json"
OTHER = "Choose another folder: causal-shaping demo --output FOLDER."


class DemoFolder:
    """A folder that holds files of the demo, by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._names = [LIST]

    def file(self, name: str) -> Path:
        """Return where to write a file, and list it as the demo's."""
        if (self.path / name).exists():
            raise FileError(f"{self.path / name} was not written by the demo. {OTHER}")
        self._names.append(name)
        write_json(self.path / LIST, {"files": self._names})
        return self.path / name


@contextmanager
def demo_folder(path: Path) -> Iterator[DemoFolder]:
    """Lock a new folder, or that of an earlier demo, of which the old files are removed.

    A folder with other files is refused.
    """
    check_folder(path)
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise FileError(f"{path} cannot be the name of a folder here. {OTHER}") from None
    listed = path / LIST
    others = set(path.glob("*")) - set(path.glob(f"{TEMPORARY}*"))
    if others and not listed.exists():
        raise FileError(f"{path} holds files that the demo did not write. {OTHER}")
    path.mkdir(parents=True, exist_ok=True)
    with locked(path / LOCK, f"Another process updates {listed}. Wait until it ends."):
        if listed.exists():
            own = read_json(listed, OTHER)["files"]
            for name in reversed(own):  # the list comes last: until then it names the others
                (path / Path(name).name).unlink(missing_ok=True)
        yield DemoFolder(path)
