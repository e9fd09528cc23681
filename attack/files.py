"""Mutated files, read through the public functions: what is refused, what is accepted, and what breaks.

Each trial takes a sound file of some kind, mutates it, and reads it in a process of its own, which is watched: an
exception that is not the package's, a hang, too much memory, and a changed file of ours that is accepted are defects.
A trial is made again by its seed, kind and number alone.

    python attack/files.py --trials 1000 --seed 0

Kinds that are read quickly are tried several times as often as those that need an engine; see `Kind.often`.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import io
import json
import multiprocessing
import os
import pickle
import random
import re
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

LIMIT_BYTES = 2**31
"""A trial that takes more memory than this is a defect."""
TIMEOUT = 60.0
"""Seconds after which a trial hangs."""
STARTING = 240.0
"""The first trial of a process imports and compiles."""
TELLING = 300.0
"""Seconds between tables of what was tried so far."""
MOST_EXAMPLES = 5
FORGED = 0.5
"""The share of trials that forge a whole folder, where that is more than one file."""
FLAW = ("foreign", "hang", "memory", "crash")
NAMES = ("seed", "steps", "version", "source", "kind", "space", "states", "shape", "checksum", "result", "settings")


# Sound files of every kind ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of file: how to write one into a folder, and how to read it, as something that can be compared."""

    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    ours: bool = True  # whether a change must be noticed
    mutated: str = "*"  # the files in the folder that are changed
    often: int = 6  # trials for one of the kinds that take long to read
    forge: Callable[[random.Random, Path], None] | None = None  # changes the folder so that all checksums fit


def _world() -> Any:
    import causal_shaping as cs

    return cs.load_world("lavacross-easy")


def _logs(steps: int = 120) -> Any:
    return _world().collect("good", steps, seed=1)


def _counts() -> Any:
    import causal_shaping as cs

    return cs.count([_world().collect(name, 300, seed=1) for name in ("good", "bad")])


def _make_parts(folder: Path) -> None:
    import causal_shaping as cs

    cs.update_counts(folder / "a.parquet", {f"day {i}": _world().collect("good", 150, seed=i) for i in range(3)})


def _parts(folder: Path) -> Any:
    import causal_shaping as cs

    return cs.Counts.load(folder / "a.parquet").checksum, repr(cs.counted_parts(folder / "a.parquet"))


def _ceilings() -> Any:
    import causal_shaping as cs

    return cs.value_ceilings(_counts(), 4, 1.0, support="any")


def _save(make: Callable[[], Any], folder: Path) -> None:
    make().save(folder / "a.parquet")


def _load(name: str, folder: Path) -> Any:
    import causal_shaping as cs

    return getattr(cs, name).load(folder / "a.parquet").checksum


def _potential(folder: Path) -> Any:
    import causal_shaping as cs

    return cs.load_potential(folder / "a.parquet").checksum


def _make_foreign(folder: Path) -> None:
    import pyarrow.parquet as pq

    from causal_shaping.io.convert import logs_table

    pq.write_table(logs_table(_logs()), folder / "a.parquet")


def _make_csv(suffix: str, folder: Path) -> None:
    _logs().save(folder / f"a{suffix}")


def _count(name: str, folder: Path) -> Any:
    import causal_shaping as cs

    return cs.count(name if name.startswith("minari:") else folder / name).checksum


def _count_foreign(name: str, folder: Path) -> Any:
    import causal_shaping as cs

    return cs.count(cs.open_logs(folder / name, state=["x", "y"])).checksum


def _numbers() -> Any:
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    state = [list(map(float, row)) for row in rng.normal(size=(60, 3))]
    columns = {"source": ["a", "b"] * 30, "episode": np.arange(60) // 2 // 3, "step": np.arange(60) // 2 % 3}
    return pa.table(columns | {"state": state, "action": rng.integers(2, size=60), "reward": -rng.random(60)})


def _make_numbers(folder: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(_numbers(), folder / "a.parquet")


def _transitions(folder: Path) -> Any:
    import numpy as np

    import causal_shaping as cs

    rows = cs.read_transitions(folder / "a.parquet")
    return [np.asarray(getattr(rows, name)).tolist() for name in ("observations", "action", "reward", "terminated")]


def _make_minari(folder: Path) -> None:
    import causal_shaping as cs

    os.environ["MINARI_DATASETS_PATH"] = str(folder)
    cs.export_minari(_logs(), "test/logs-v0")


def _minari(folder: Path) -> Any:
    os.environ["MINARI_DATASETS_PATH"] = str(folder)
    return _count("minari:test/logs-v0", folder)


def _make_fitted(folder: Path) -> None:
    import causal_shaping as cs

    cs.fit_ceilings(_numbers(), horizon=2, reward_max=0.0, trees=2, members=1).save(folder / "fit")


def _fitted(folder: Path) -> Any:
    import numpy as np

    import causal_shaping as cs

    fitted = cs.FittedCeilings.load(folder / "fit")
    seen = np.random.default_rng(1).normal(size=(5, *fitted.shape))
    phi, guess = fitted.potential(), fitted.potential("mean")
    for numbers in (fitted.q_values(seen), fitted.spread(seen), phi(seen, 1), phi(seen[0], 0), guess(seen, 0)):
        if not np.isfinite(numbers).all():
            raise ArithmeticError("a value is not finite")
    fitted.summary()
    told = json.loads(fitted.to_json())
    del told["settings"]  # a later version may have others
    return fitted(seen).tolist(), json.dumps(told)


def _forge_fitted(rng: random.Random, folder: Path) -> None:
    """Change an array or the description of a fit; then all checksums fit again."""
    import numpy as np

    from causal_shaping.fitted.results import ARRAYS, DESCRIPTION, _checksum
    from causal_shaping.io.inputs import read_arrays, with_checksum

    fit = folder / "fit"
    held = json.loads((fit / DESCRIPTION).read_text())
    arrays = read_arrays(fit / ARRAYS)
    del held["checksum"]
    if rng.random() < 0.4:
        held = edited_json(rng, held)
    else:
        name = rng.choice(sorted(arrays))
        made = edited_array(rng, arrays.pop(name))
        if made is not None:
            arrays[name] = made
    np.savez(fit / ARRAYS, **arrays)
    held["arrays"] = _checksum(arrays)
    (fit / DESCRIPTION).write_text(json.dumps(with_checksum(held)))


def edited_array(rng: random.Random, array: Any) -> Any:
    """Change numbers, type or shape of an array; None to remove it."""
    import numpy as np

    how = rng.choice(("number", "number", "number", "swap", "type", "cut", "repeat", "flat", "remove"))
    if how == "remove":
        return None
    if how == "type":
        return array.astype(rng.choice(("i1", "i4", "i8", "f4", "f8", "u2", "?", "c8")))
    if how == "flat":
        return array.reshape(rng.choice(((-1,), (1, *array.shape), (*array.shape, 1))))
    if array.ndim and how in ("cut", "repeat"):
        axis = rng.randrange(array.ndim)
        return array.take(range(array.shape[axis] - 1), axis) if how == "cut" else np.repeat(array, 2, axis)
    made = array.copy().reshape(-1)
    for _ in range(rng.choice((1, 1, 5))):
        values = (0, 1, -1, 2**31 - 1, rng.randrange(-5, max(1, made.size) + 5), float("nan"), float("inf"), 1e38)
        place, value = rng.randrange(made.size), rng.choice(values)
        with np.errstate(all="ignore"):
            made[place] = made[rng.randrange(made.size)] if how == "swap" else np.asarray(value).astype(made.dtype)
    return made.reshape(array.shape)


def _fit(folder: Path, stop: float) -> Any:
    """Fit, or go on with a fit, until a share of the work is done."""
    import causal_shaping as cs

    def progress(done: float, whole: float, what: str) -> None:
        if done >= stop * whole and "Fitting" in what:
            raise InterruptedError

    options: dict[str, Any] = {"trees": 1, "members": 1, "held_out": 0.0, "progress": progress}
    return cs.fit_ceilings(_numbers(), horizon=2, reward_max=0.0, folder=folder, **options)


def _make_begun(folder: Path) -> None:
    with contextlib.suppress(InterruptedError):
        _fit(folder / "run", 0.3)


def _begun(folder: Path) -> Any:
    with tempfile.TemporaryDirectory() as scratch:  # a fit that ends removes its parts
        shutil.copytree(folder, scratch, dirs_exist_ok=True)
        return _fit(Path(scratch) / "run", 2.0).to_json()


def _make_map(folder: Path) -> None:
    (folder / "map.txt").write_text("#######\n#.L.c.#\n#.#L#G#\n#.....#\n#######\n")


def _map(folder: Path) -> Any:
    import causal_shaping as cs

    model = cs.load_world(str(folder / "map.txt")).model
    return [model.next_state.tolist(), model.reward.tolist(), model.terminal.tolist()]


def _train() -> Any:
    import causal_shaping as cs

    return cs.train(_world(), None, steps=60, seed=0)


def _seeds(folder: Path) -> Any:
    import causal_shaping as cs

    world = _world()
    phi, options = cs.Potential.zero(world), {"steps": 50, "seeds": [0, 1], "folder": folder}
    return cs.train_seeds(world, phi, learner="q-ucb-shaping", **options).results


def _make_study(folder: Path) -> None:
    from causal_shaping.paper.study.plan import Plan
    from causal_shaping.paper.study.run import run_study

    only = {"world": ["lavacross-easy"], "method": ["zero"]}
    run_study(Plan(seeds=1, quick=True, deep=False, only=only), folder, workers=1)


def _merge(folder: Path) -> Any:
    from causal_shaping.paper.study.run import merge

    results = merge(folder)
    return repr((results.settings, results.runs, results.potentials))  # NaN is NaN there


def _results(folder: Path) -> Any:
    from causal_shaping.paper.study.run import load_results

    results = load_results(folder)
    return repr((results.settings, results.runs, results.potentials))


def _claim(folder: Path) -> Any:
    from causal_shaping.io.files import claim_run_folder

    settings = {"world": "here", "steps": 3, "rule": {"bonus": 0.5, "clip": None}}
    with claim_run_folder(folder, settings, "seed-*.parquet"):
        (folder / "seed-0.parquet").touch()


def _worth(folder: Path) -> Any:
    return repr(_belief().worth(steps=40, seeds=2, folder=folder).worlds)


def _belief() -> Any:
    import causal_shaping as cs

    return cs.posterior(_counts(), 4, 1.0)


def _sensitivity() -> Any:
    import causal_shaping as cs

    return cs.sensitivity(_counts(), 4, 1.0, -2.0, plug_in=True, confounding=[1.0, 2.0], support="any")


KINDS: dict[str, Kind] = {
    "parquet": Kind(_make_foreign, partial(_count_foreign, "a.parquet"), ours=False, often=1),
    "lists": Kind(_make_numbers, _transitions, ours=False, often=1),
    "csv": Kind(partial(_make_csv, ".csv"), partial(_count_foreign, "a.csv"), ours=False, often=1),
    "csv.gz": Kind(partial(_make_csv, ".csv.gz"), partial(_count_foreign, "a.csv.gz"), ours=False, often=1),
    "csv.zst": Kind(partial(_make_csv, ".csv.zst"), partial(_count_foreign, "a.csv.zst"), ours=False, often=1),
    "minari": Kind(_make_minari, _minari, often=1),
    "logs": Kind(partial(_save, _logs), partial(_count, "a.parquet"), often=1),
    "counts": Kind(partial(_save, _counts), partial(_load, "Counts")),
    "counts by part": Kind(_make_parts, _parts),
    "ceilings": Kind(partial(_save, _ceilings), partial(_load, "Ceilings")),
    "potential": Kind(partial(_save, lambda: _ceilings().potential()), _potential),
    "posterior": Kind(partial(_save, _belief), partial(_load, "Posterior")),
    "sensitivity": Kind(partial(_save, _sensitivity), partial(_load, "Sensitivity")),
    "training run": Kind(partial(_save, _train), partial(_load, "Run")),
    "seeds": Kind(lambda folder: _seeds(folder) and None, _seeds, mutated="seed-?.parquet"),
    "worth": Kind(lambda folder: _worth(folder) and None, _worth, mutated="world-*.json", often=1),
    "fitted forest": Kind(_make_fitted, _fitted, forge=_forge_fitted),
    "fit begun": Kind(_make_begun, _begun, ours=False, mutated="member-*.npz", often=1),
    "map": Kind(_make_map, _map, ours=False),
    "study parts": Kind(_make_study, _merge, mutated="parts/**/*.json"),
    "study": Kind(_make_study, _results, mutated="*s.parquet"),
    "settings": Kind(_claim, _claim, mutated="settings.json"),
}


# Mutations --------------------------------------------------------------------------------------------------------


def flip(rng: random.Random, held: bytes) -> bytes:
    """Flip a few bits."""
    made = bytearray(held)
    for _ in range(rng.choice((1, 1, 1, 3, 20))):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def cut(rng: random.Random, held: bytes) -> bytes:
    """Cut the end off."""
    return held[: rng.choice((rng.randrange(len(held)), len(held) - 1 - rng.randrange(min(16, len(held)))))]


def splice(rng: random.Random, held: bytes) -> bytes:
    """Copy a part of the file to another place, over what is there or between."""
    begin, place = rng.randrange(len(held)), rng.randrange(len(held))
    part = held[begin : begin + rng.choice((1, 8, 64, 512, 4096))]
    return held[:place] + part + held[place + (len(part) if rng.random() < 0.7 else 0) :]


def numbers(rng: random.Random, held: bytes) -> bytes:
    """Put extreme numbers into the file, of 1 to 8 bytes."""
    size, place = rng.choice((1, 2, 4, 8)), rng.randrange(len(held))
    value = rng.choice((0, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**64 - 1, 10**12, rng.getrandbits(64)))
    return (
        held[:place]
        + (value & (2 ** (8 * size) - 1)).to_bytes(size, rng.choice(("little", "big")))
        + held[place + size :]
    )


def words(rng: random.Random, held: bytes) -> bytes:
    """Change a number or a word in text, wherever it stands."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?|[A-Za-z_]{3,}", held))
    if not found:
        return flip(rng, held)
    one = rng.choice(found)
    other = rng.choice(
        (b"0", b"-1", b"1e400", b"9" * 30, b"NaN", b"null", b"", one.group()[::-1], b"[" * 5000, b"0x10")
    )
    if rng.random() < 0.5:  # of the same length, so that sizes still fit
        other = (other + b"0" * len(one.group()))[: len(one.group())]
    return held[: one.start()] + other + held[one.end() :]


def lines(rng: random.Random, held: bytes) -> bytes:
    """Remove, repeat or swap a line, or two cells of one."""
    parts = held.split(b"\n")
    i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
    cells = parts[i].split(b",")
    if len(cells) > 1 and rng.random() < 0.5:
        rng.shuffle(cells)
        parts[i] = b",".join(cells)
    else:
        parts[i], parts[j] = rng.choice(((parts[j], parts[i]), (b"", parts[j]), (parts[j], parts[j])))
    return b"\n".join(parts)


BOMB = gzip.compress(bytes(10**7))


def garbage(rng: random.Random, held: bytes) -> bytes:
    """Random bytes, packed or not."""
    import pyarrow as pa

    made = rng.randbytes(rng.choice((0, 1, 100, 10_000)))
    packed = (made, gzip.compress(made), pa.compress(made, codec="zstd", asbytes=True), BOMB)
    return rng.choice(packed)


def packed(rng: random.Random, held: bytes) -> bytes:
    """Mutate what a compressed file holds, and compress it again."""
    if held[:2] == b"\x1f\x8b":
        return gzip.compress(rng.choice((flip, cut, words, lines))(rng, gzip.decompress(held)))
    return flip(rng, held)


def edited_json(rng: random.Random, held: dict[str, Any]) -> dict[str, Any]:
    """Change one value somewhere in a JSON object."""
    made = json.loads(json.dumps(held))
    at: Any = made
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = rng.choice([name for name in NAMES if name in keys] or keys if rng.random() < 0.3 else keys)
        if isinstance(at[key], (dict, list)) and at[key] and rng.random() < 0.7:
            at = at[key]
            continue
        value = at[key]
        others: list[Any] = [None, 0, -1, 10**12, 1e308, "", "x", [], {}, True, [value], {"a": value}]
        others += [value + 1, value * 2] if isinstance(value, (int, float)) else [str(value) + "x"]
        if rng.random() < 0.2:
            del at[key]
        else:
            at[key] = rng.choice(others)
        return made


def json_file(rng: random.Random, held: bytes) -> bytes:
    """Change a value of a JSON file."""
    return json.dumps(edited_json(rng, json.loads(held))).encode()


def parquet(rng: random.Random, held: bytes) -> bytes:
    """Write a Parquet file anew with other metadata, columns swapped, renamed or removed, or rows in another order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(io.BytesIO(held)).read()
    keys = dict(table.schema.metadata or {})
    names, key = table.column_names, b"causal_shaping"
    how = rng.choice(("metadata", "swap", "rename", "remove", "rows", "type", "null", "value"))
    i, j = rng.randrange(len(names)), rng.randrange(len(names))
    if how == "metadata" and key in keys:
        keys[key] = json.dumps(edited_json(rng, json.loads(keys[key]))).encode()
    elif how == "swap":
        names[i], names[j] = names[j], names[i]
        table = table.rename_columns(names)
    elif how == "rename":
        table = table.rename_columns(
            [rng.choice(("", names[j], "x")) if k == i else name for k, name in enumerate(names)]
        )
    elif how == "remove":
        table = table.remove_column(i)
    elif how == "rows":
        table = table.take(
            pa.array([rng.randrange(table.num_rows) for _ in range(rng.choice((0, 1, table.num_rows)))], pa.int64())
        )
    elif how == "type":
        table = table.set_column(i, names[i], pa.array([str(value) for value in table[i].to_pylist()]))
    else:
        values = table[i].to_pylist()
        values[rng.randrange(len(values))] = None if how == "null" else values[rng.randrange(len(values))]
        table = table.set_column(i, names[i], pa.array(values))
    made = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(keys), made)
    return made.getvalue()


def archive(rng: random.Random, held: bytes) -> bytes:
    """Change the header or the numbers of an array in an .npz file, whose checksums fit again."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(held)) as old, zipfile.ZipFile(made, "w", rng.choice((0, 0, 8))) as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            content = old.read(name)
            if name == chosen:
                content = rng.choice((flip, numbers, cut, words))(rng, content)
            new.writestr(rng.choice((name, name, name, "x.npy")) if name == chosen else name, content)
    return made.getvalue()


def forged(rng: random.Random, held: bytes) -> bytes:
    """Change a file of ours on purpose, so that its checksums fit again: it may be accepted, but must break nothing."""
    if held[:4] == b"PAR1":
        from causal_shaping.io.container import SEAL_KEY, seal

        made = parquet(rng, held)
        if SEAL_KEY not in made:
            raise ValueError("not a file of ours")
        with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
            Path(file.name).write_bytes(made)
            seal(file.name)
            return Path(file.name).read_bytes()
    from causal_shaping.io.inputs import with_checksum

    content = json.loads(held)
    del content["checksum"]
    return json.dumps(with_checksum(edited_json(rng, content))).encode()


ANY = (flip, cut, splice, numbers, words, garbage)
BY_SUFFIX: dict[str, tuple[Callable[[random.Random, bytes], bytes], ...]] = {
    ".parquet": (parquet, parquet, forged),
    ".json": (json_file, json_file, forged),
    ".csv": (lines, words),
    ".gz": (packed, packed),
    ".npz": (archive, archive),
    ".txt": (lines, words),
}


def mutated(rng: random.Random, path: Path) -> tuple[str, bytes]:
    """Return a mutation by name, and what it makes of a file; it is never the same."""
    held = path.read_bytes()
    while True:
        how = rng.choice(ANY + 2 * BY_SUFFIX.get(path.suffix, ()))
        try:
            made = how(rng, held)
        except Exception:  # such as a table that cannot be written; another one can
            continue
        if made != held:
            return how.__name__, made


# Trials -----------------------------------------------------------------------------------------------------------


def fingerprint(value: Any) -> str:
    """Return what tells results apart."""
    return hashlib.sha256(pickle.dumps(value)).hexdigest()


def _attempt(kind: str, folder: Path, make: bool = False) -> tuple[str, str]:
    """Read a folder, or write it first; return "read" with the fingerprint, or how it failed with the message."""
    from causal_shaping.errors import CausalShapingError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if make:
                KINDS[kind].make(folder)
            return "read", fingerprint(KINDS[kind].read(folder))
    except CausalShapingError as error:
        return "refused", f"{type(error).__name__}: {error}"
    except BaseException as error:
        frames = [f"{Path(one.filename).name}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)]
        return "foreign", f"{type(error).__name__}: {str(error)[:200]} ({' '.join(frames[-6:])})"


def _serve(pipe: Any) -> None:
    """Read what is asked for, one after another, in a process of its own."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - libraries in C++ complain there
    while True:
        kind, folder, make = pipe.recv()
        outcome = _attempt(kind, Path(folder), make)
        pipe.send((*outcome, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))


class Reader:
    """A process that reads, started anew after it hung, crashed or grew."""

    def __init__(self) -> None:
        self.process: Any = None

    def read(self, kind: str, folder: Path, make: bool = False) -> tuple[str, str]:
        """Return how it went to read a folder, or to write it first, and what was read or said."""
        limit = STARTING if make else TIMEOUT
        if self.process is None:
            spawn = multiprocessing.get_context("spawn")
            self.pipe, far = spawn.Pipe()
            self.process, limit = spawn.Process(target=_serve, args=(far,), daemon=True), STARTING
            self.process.start()
            far.close()
        self.pipe.send((kind, str(folder), make))
        if not self.pipe.poll(limit):
            self.close()
            return "hang", f"more than {limit:g} s"
        try:
            outcome, said, used = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            self.close()
            return "crash", f"exit code {code}"
        if used > LIMIT_BYTES:
            self.close()
            return "memory", f"{used:,} bytes, {outcome}: {said}"
        return outcome, said

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


@dataclass
class Tally:
    """What became of the trials of one kind."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    by_mutation: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, outcome: str, mutation: str, flaw: bool, what: str) -> None:
        """Count a trial; keep some of those that are flaws."""
        self.counts["tried"] += 1
        self.counts[outcome] += 1
        self.by_mutation[mutation, outcome] += 1
        if flaw:
            self.counts["flaws"] += 1
            if len(self.examples) < MOST_EXAMPLES:
                self.examples.append(what)
                print(what, flush=True)


def attack(
    seed: int = 0,
    trials: int | None = 500,
    seconds: float | None = None,
    kinds: list[str] | None = None,
    keep: Path | None = None,
) -> dict[str, Tally]:
    """Mutate files of each kind and read them; return what became of them.

    Args:
        seed: of the mutations.
        trials: of each kind, times `Kind.often`; None for as many as there is time for.
        seconds: for all kinds together; None for no limit.
        kinds: those to try, by name; all of them by default.
        keep: a folder for the files of trials that showed a defect.
    """
    chosen = kinds or list(KINDS)
    reader, tallies, begin = Reader(), {kind: Tally() for kind in chosen}, time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        sound: dict[str, str] = {}
        for kind in chosen:
            (Path(scratch) / kind).mkdir()
            outcome, sound[kind] = reader.read(kind, Path(scratch) / kind, make=True)
            if outcome != "read":
                raise RuntimeError(f"{kind}: the file that was not mutated cannot be read: {sound[kind]}")
        number, told = 0, begin
        while (trials is None or number < trials) and (seconds is None or time.monotonic() < begin + seconds):
            for kind in chosen:
                for k in range(KINDS[kind].often):
                    name = f"{seed}/{kind}/{number * KINDS[kind].often + k}"
                    _trial(reader, tallies[kind], Path(scratch), kind, name, sound[kind], keep)
            number += 1
            if time.monotonic() > told + TELLING:
                told = time.monotonic()
                print(table_of(tallies, f"so far, seed {seed}, {told - begin:.0f} s"), flush=True)
    reader.close()
    return tallies


def _trial(reader: Reader, tally: Tally, scratch: Path, kind: str, name: str, sound: str, keep: Path | None) -> None:
    """Mutate one file of a kind and read it."""
    rng, folder = random.Random(name), scratch / "trial"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(scratch / kind, folder)
    held = KINDS[kind]
    path = rng.choice(sorted(one for one in folder.rglob(held.mutated) if one.is_file() and one.stat().st_size))
    if held.forge is not None and rng.random() < FORGED:
        held.forge(rng, folder)
        mutation = forged.__name__
    else:
        mutation, content = mutated(rng, path)
        path.write_bytes(content)
    outcome, said = reader.read(kind, folder)
    if outcome == "read":
        outcome = "equal" if said == sound else "changed"
    flaw = outcome in FLAW or (outcome == "changed" and held.ours and mutation != forged.__name__)
    tally.add(outcome, mutation, flaw, f"{name} ({mutation} of {path.relative_to(folder)}): {outcome}: {said}")
    if flaw and keep is not None:
        kept = keep / name.replace("/", "-").replace(" ", "-")
        shutil.copytree(folder, kept, dirs_exist_ok=True)


OUTCOMES = ("tried", "refused", "equal", "changed", *FLAW, "flaws")


def table_of(tallies: dict[str, Tally], title: str) -> str:
    """Return what was tried as a table."""
    whole = Tally(sum((tally.counts for tally in tallies.values()), Counter()))
    lines = [title, f"{'':15}" + "".join(f"{name:>9}" for name in OUTCOMES)]
    for kind, tally in [*tallies.items(), ("all", whole)]:
        lines.append(f"{kind:15}" + "".join(f"{tally.counts[name]:9,}" for name in OUTCOMES))
    return "\n".join(lines)


def main() -> None:
    """Run the attack and print a table; exit code 1 if there is a defect."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--trials", type=int, default=100, help="of each kind, several times as many of those that are read quickly"
    )
    parser.add_argument("--seconds", type=float, help="for all kinds together")
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), help="all of them by default")
    parser.add_argument("--keep", type=Path, help="a folder for files that showed a defect")
    given = parser.parse_args()
    begin = time.monotonic()
    tallies = attack(given.seed, given.trials, given.seconds, given.kinds, given.keep)
    print(table_of(tallies, f"seed {given.seed}, {time.monotonic() - begin:.0f} s"))
    sys.exit(any(tally.counts["flaws"] for tally in tallies.values()))


if __name__ == "__main__":
    main()
