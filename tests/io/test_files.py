"""Files are replaced whole or not at all."""

import pytest

from causal_shaping.errors import FileError
from causal_shaping.io.files import replacing


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with replacing(path, [".txt"]) as temporary:
            temporary.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_finished_write_replaces_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path, [".txt"]) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_of_the_disk_names_the_file(tmp_path):
    def fail():
        with replacing(tmp_path / "a.txt", [".txt"]):
            raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match=r"a.txt cannot be written: No space left on device"):
        fail()
