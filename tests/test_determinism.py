"""Same seed, same bytes: in another process, with other threads, with sources and files in another order."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import causal_shaping as cs

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")

THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # the suite sets the last two itself

PROGRAM = """
import sys, warnings
from pathlib import Path
import causal_shaping as cs

warnings.simplefilter("ignore")
folder, logs = Path(sys.argv[1]), []
world = cs.load_world("lavacross-easy")
for name in ("good", "random"):
    world.collect(name, 3_000).save(folder / f"{name}.parquet")
    world.collect(name, 500, seed=1).save(folder / f"{name}.csv")
    logs.append(cs.read_logs(folder / f"{name}.parquet"))
counts = cs.count(logs)
counts.save(folder / "counts.parquet")
ceilings = cs.value_ceilings(counts, 20, 0.1, confidence=0.95)
ceilings.save(folder / "phi.parquet")
ceilings.save_html(folder / "page.html")
(folder / "inspection.json").write_text(cs.inspect(logs).to_json())
printed = {"learner": "q-ucb-shaping"}
cs.train(world, ceilings, steps=500, seed=3, **printed).save(folder / "run.parquet")
cs.train_seeds(world, ceilings, steps=300, seeds=range(3), folder=folder / "seeds", **printed)
"""


def written(folder, **environment):
    """Run the program in a process of its own; return each file that it wrote."""
    folder.mkdir()
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    ran = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_file_has_the_same_bytes_in_another_process_with_other_threads(tmp_path):
    """Hash seeds, threads of compiled code and of BLAS, time zone and locale change nothing."""
    one = written(tmp_path / "one", PYTHONHASHSEED="1", TZ="UTC", **dict.fromkeys(THREADS, "1"))
    two = written(tmp_path / "two", PYTHONHASHSEED="2", TZ="Asia/Tokyo", **dict.fromkeys(THREADS, "2"))
    assert len(one) > 10
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Logs of two sources with rewards of many values, the first in two files."""
    folder, rng = tmp_path_factory.mktemp("parts"), np.random.default_rng(0)
    world = cs.load_world("lavacross-easy")
    for name, seed in (("good", 0), ("good", 1), ("random", 0)):
        logs = world.collect(name, 2_000, seed=seed)
        frame = logs.to_pandas().assign(reward=lambda rows: rows.reward + rng.random(len(rows)))
        frame["episode"] += 10_000 * seed
        frame.to_parquet(folder / f"{name}-{seed}.parquet")
    return folder


def counted(parts, *sources):
    given = {"good": ["good-0.parquet", "good-1.parquet"], "swapped": ["good-1.parquet", "good-0.parquet"]}
    found = []
    for source in sources:
        files = given.get(source, [f"{source}-0.parquet"])
        name = "good" if source == "swapped" else source
        found.append(cs.read_logs([parts / file for file in files], source=name, state=["x", "y"]))
    return cs.count(found)


def test_the_order_of_files_and_of_sources_changes_sums_of_rewards_in_the_last_bits_only(parts):
    """What is counted is exact; a sum of doubles in another order is not, so that bounds may differ by rounding."""
    one = counted(parts, "good", "random")
    for other in (counted(parts, "swapped", "random"), counted(parts, "random", "good")):
        moved = cs.value_ceilings(other, 5, 3.0, support="any", confidence=0.95)
        found = cs.value_ceilings(one, 5, 3.0, support="any", confidence=0.95)
        order, actions = found.space.positions(moved.space)
        assert (one.n.sum(), sorted(one.n)) == (other.n.sum(), sorted(other.n))
        np.testing.assert_allclose(moved.values, found.values[:, order], rtol=1e-12)
        np.testing.assert_allclose(moved.q_values, found.q_values[:, order][:, :, actions], rtol=1e-12)


def test_the_same_call_gives_the_same_bytes_twice(parts, tmp_path):
    for name in ("a", "b"):
        cs.value_ceilings(counted(parts, "good", "random"), 5, 3.0).save(tmp_path / f"{name}.parquet")
    assert Path(tmp_path / "a.parquet").read_bytes() == Path(tmp_path / "b.parquet").read_bytes()
