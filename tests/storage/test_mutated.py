"""A damaged file of ours is a clear error, and never another result."""

import contextlib
import shutil
import tempfile
from pathlib import Path

import kinds
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from causal_shaping.errors import CausalShapingError


@st.composite
def mutations(draw):
    """A function of bytes that flips a bit, cuts the end off, or copies a part over another or between."""
    how, begin, place = draw(st.sampled_from(("flip", "cut", "splice"))), draw(st.floats(0, 1)), draw(st.floats(0, 1))
    size, bit, over = draw(st.sampled_from((1, 8, 64, 512))), draw(st.integers(0, 7)), draw(st.booleans())

    def mutated(held):
        i, j = (int(share * (len(held) - 1)) for share in (begin, place))
        if how == "cut":
            return held[:i]
        if how == "flip":
            return held[:i] + bytes([held[i] ^ 1 << bit]) + held[i + 1 :]
        part = held[i : i + size]
        return held[:j] + part + held[j + len(part) * over :]

    return mutated


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A folder with a file of each kind, and what is read from it."""
    made = {}
    for kind in kinds.KINDS:
        folder = tmp_path_factory.mktemp("sound")
        kinds.make(kind, folder)
        made[kind] = folder, kinds.read(kind, folder)
    return made


@pytest.mark.parametrize("kind", kinds.KINDS)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(mutation=mutations(), number=st.integers(0))
def test_a_mutated_file_is_refused_or_read_as_it_was(sound, kind, mutation, number):
    folder, known = sound[kind]
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(folder, Path(scratch) / "copy")
        files = sorted(path for path in copy.rglob("*") if path.is_file())
        chosen = files[number % len(files)]
        chosen.write_bytes(mutation(chosen.read_bytes()))
        with contextlib.suppress(CausalShapingError):
            assert kinds.read(kind, copy) == known
