"""Opening what is read: regular files, literally, the same ones to the end; sizes are checked before memory is used."""

import io
import json
import os
import zipfile

import numpy as np
import pytest

from causal_shaping.errors import FileError
from causal_shaping.storage import InputFile, read_arrays, read_json, with_checksum, write_arrays, write_json


@pytest.mark.parametrize("how", ["appended", "replaced", "touched", "removed"])
def test_a_change_is_noticed(tmp_path, how):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    opened = InputFile.at(path)
    if how == "appended":
        with path.open("ab") as file:
            file.write(b"d")
    elif how == "replaced":
        (tmp_path / "b").write_bytes(b"abd")
        (tmp_path / "b").replace(path)
    elif how == "touched":
        os.utime(path, ns=(1, 1))
    else:
        path.unlink()
    with pytest.raises(FileError, match=r"changed while it was read|does not exist"):
        opened.check_unchanged()


def test_json_comes_back_and_changed_json_is_refused(tmp_path):
    path, content = tmp_path / "a.json", {"seed": 3, "curve": [0.1, float("inf")], "name": "ä"}
    write_json(path, content)
    assert read_json(path) == content
    for changed in (with_checksum(content) | {"seed": 4}, content):
        path.write_text(json.dumps(changed))
        with pytest.raises(FileError, match=r"a\.json was changed after it was written.* Remove it"):
            read_json(path, "Remove it.")


def test_json_that_version_0_2_wrote_is_read(tmp_path):
    path, content = tmp_path / "a.json", {"seed": 3}
    for end in ("", "\n"):
        path.write_text(json.dumps(with_checksum(content)) + end)
        assert read_json(path) == content


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[1]", "null", "{", "\udcff", ""])
def test_what_is_no_json_object_is_told(tmp_path, text):
    (tmp_path / "a.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(FileError, match=r"a\.json cannot be read"):
        read_json(tmp_path / "a.json")


ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(3), "c": np.array([True, False]), "d": np.zeros((0, 2))}


def archive(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)


def npy(shape, content, descr="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def test_arrays_come_back(tmp_path):
    write_arrays(tmp_path / "a.npz", ARRAYS | {"e": np.asfortranarray(ARRAYS["a"])})
    assert np.load(tmp_path / "a.npz")["b"] == 3  # other programs can read it
    read = read_arrays(tmp_path / "a.npz")
    for name, array in (ARRAYS | {"e": ARRAYS["a"]}).items():
        assert read[name].dtype == array.dtype
        assert np.array_equal(read[name], array)


@pytest.mark.parametrize(
    "member",
    [
        npy((10**11,), b"\0" * 8),  # 784 GiB
        npy((2**62, 4), b""),  # overflows to 0
        npy((-1,), b"\0" * 8),
        npy((1,), b"\0" * 8, "|O"),
        b"\x93NUMPY\x09\x00",
        b"",
    ],
)
def test_an_array_that_is_not_what_its_header_says_is_refused(tmp_path, member):
    archive(tmp_path / "a.npz", {"a.npy": member})
    with pytest.raises(FileError, match=r"a\.npz is not a complete file of arrays"):
        read_arrays(tmp_path / "a.npz")


def test_a_bomb_is_refused(tmp_path):
    archive(tmp_path / "a.npz", {"a.npy": npy((10**7,), bytes(8 * 10**7))}, zipfile.ZIP_DEFLATED)
    with pytest.raises(FileError, match="more bytes than it has"):
        read_arrays(tmp_path / "a.npz")


def test_one_array_that_is_listed_many_times_is_refused(tmp_path):
    """It would be read as often."""
    path = tmp_path / "a.npz"
    archive(path, {"a.npy": npy((10_000,), bytes(80_000))})
    held = path.read_bytes()
    begin, end = held.index(b"PK\x01\x02"), held.index(b"PK\x05\x06")
    entry, last = held[begin:end], bytearray(held[end:])
    last[8:12], last[12:16] = (300).to_bytes(2, "little") * 2, (300 * len(entry)).to_bytes(4, "little")
    path.write_bytes(held[:begin] + entry * 300 + last)
    with pytest.raises(FileError, match="more bytes than it has"):
        read_arrays(path)


class Harmful:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_nothing_is_unpickled(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.array([Harmful()], dtype=object))
    with pytest.raises(FileError, match="not a complete file of arrays"):
        read_arrays(tmp_path / "a.npz")
