"""A damaged file is a clear error, and never another result, whichever byte is changed or wherever it is cut."""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError, FileError
from causal_shaping.storage import BLANK, InputFile, read_json, read_metadata, write_json

OLD = Path(__file__).parent / "releases" / "0.2"


def _potential():
    return cs.Potential([[1.0, 2.0], [0.5, -1.0]], cs.Space(["a", "b"], ["go"]), origin="nothing")


def _logs():
    return cs.load_world("lavacross-easy").collect("good", 50)


def read_logs(path):
    """Refuse what `cs.read_logs` refuses, without the time that an engine takes to start."""
    assert read_metadata(InputFile.at(path), "logs")["source"] == "good"


KINDS = {
    "logs": (_logs, read_logs),
    "counts": (lambda: cs.count(_logs()), cs.Counts.load),
    "potential": (_potential, cs.load_potential),
    "training run": (lambda: cs.train(cs.load_world("lavacross-easy"), steps=20, seed=0), cs.Run.load),
}


def damaged(held, step):
    """Yield the bytes of a file with one of them changed, at every few places; cut off; and with one more."""
    for at in range(0, len(held), step):
        yield held[:at] + bytes([held[at] ^ (1 << at % 8)]) + held[at + 1 :]
    yield from (held[:at] for at in range(0, len(held), 20 * step))
    yield from (held[:-1], held[:-22], held[: -len(BLANK)], held + b"\0")


@pytest.mark.parametrize("kind", KINDS)
def test_every_changed_byte_is_refused(tmp_path, kind):
    path, (make, read) = tmp_path / "a.parquet", KINDS[kind]
    make().save(path)
    read(path)
    for content in damaged(path.read_bytes(), 2 if kind == "logs" else 5):
        path.write_bytes(content)
        with pytest.raises(CausalShapingError, match=r"a\.parquet"):
            read(path)


@pytest.fixture
def fit(tmp_path):
    cs.FittedCeilings.load(OLD / "fitted forest" / "fit").save(tmp_path / "fit")
    return tmp_path / "fit"


@pytest.mark.parametrize(("name", "step"), [("fitted.json", 5), ("fitted.npz", 9)])
def test_every_changed_byte_of_a_fit_is_refused(fit, name, step):
    for content in damaged((fit / name).read_bytes(), step):
        (fit / name).write_bytes(content)
        with pytest.raises(FileError, match="fit"):
            cs.FittedCeilings.load(fit)


def test_every_changed_byte_of_a_json_file_is_refused(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"small": 1e-05, "odd": 0.1 + 0.2, "name": "ä", "many": [1, 2, float("nan")]})
    for content in damaged(path.read_bytes(), 1):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"a\.json"):
            read_json(path)


@pytest.mark.parametrize(("kind", "limit"), [("counts", 0), ("fitted forest", 60)])
def test_a_damaged_file_of_version_0_2_is_refused_or_read_as_it_was(tmp_path, kind, limit):
    read = (lambda file: cs.Counts.load(file).checksum) if kind == "counts" else fit_of
    path = {"counts": tmp_path / "old" / "a.parquet", "fitted forest": tmp_path / "old" / "fit"}[kind]
    shutil.copytree(OLD / kind, tmp_path / "old")
    known, accepted = read(path), 0
    file = path if kind == "counts" else path / "fitted.npz"
    for content in damaged(file.read_bytes(), 13):
        file.write_bytes(content)
        with suppress(FileError):
            assert read(path) == known
            accepted += 1  # such as the date of an array in its archive
    assert accepted <= limit


def fit_of(folder):
    fitted = cs.FittedCeilings.load(folder)
    return fitted(np.zeros((2, *fitted.shape))).tolist(), json.loads(fitted.to_json())
