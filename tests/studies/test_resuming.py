"""Long work in parts: it resumes, runs side by side, and a part that was changed is never another result."""

import pytest

from causal_shaping.errors import ArgumentError, FileError
from studies import parts


def squared(name):
    return {"square": int(name.split()[-1]) ** 2}


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    ran = []

    def work(name):
        ran.append(name)
        if ran == ["a 1", "b 2"]:
            raise KeyboardInterrupt
        return squared(name)

    with pytest.raises(KeyboardInterrupt):
        parts.run(tmp_path, ["a 1", "b 2", "c 3"], work)
    found = parts.run(tmp_path, ["a 1", "b 2", "c 3"], work)
    assert found == {"a 1": {"square": 1}, "b 2": {"square": 4}, "c 3": {"square": 9}}
    assert ran == ["a 1", "b 2", "b 2", "c 3"]
    parts.run(tmp_path, ["a 1"], work, again=True)
    assert ran[-1] == "a 1"


def test_any_byte_that_changes_is_noticed(tmp_path):
    parts.run(tmp_path, ["a 3"], squared)
    (path,) = tmp_path.glob(parts.FILES)
    held = path.read_bytes()
    for place in range(len(held)):
        for bit in (1, 16, 128):
            path.write_bytes(held[:place] + bytes([held[place] ^ bit]) + held[place + 1 :])
            with pytest.raises(FileError, match="Remove it to run that part again"):
                next(parts.read(tmp_path))
    for text in (held[:-1], held + b"\n", b"", b"[" * 100_000):
        path.write_bytes(text)
        with pytest.raises(FileError, match="is damaged"):
            next(parts.read(tmp_path))


def test_what_a_kill_leaves_half_written_is_no_part(tmp_path):
    parts.run(tmp_path, ["a 3"], squared)
    (path,) = tmp_path.glob(parts.FILES)
    path.with_name(f".1.{path.name}").write_text('{"checksum":')
    assert [part["name"] for part in parts.read(tmp_path)] == ["a 3"]


def test_parts_run_side_by_side_and_names_are_names(tmp_path):
    names = ["a/../../a 1", "b: <2>/x 2", "c 3", "d 4"]
    found = parts.run(tmp_path / "in", names, squared, workers=2)
    assert len(list((tmp_path / "in").glob(parts.FILES))) == 4
    assert [found[name]["square"] for name in names] == [1, 4, 9, 16]


def test_a_part_that_fails_in_another_process_fails_here(tmp_path):
    with pytest.raises(ValueError, match="invalid literal"):
        parts.run(tmp_path, ["a 1", "b x"], squared, workers=2)
    with pytest.raises(ArgumentError, match="workers is 0"):
        parts.run(tmp_path, ["a 1", "c 3"], squared, workers=0, again=True)
