"""What does not fit into memory goes to a temporary folder that is removed, never to the user's."""

import os
import subprocess
import sys

import causal_shaping as cs
from causal_shaping.logs import engine

LOGS = cs.load_world("lavacross-easy").collect("good", 300)

SPILL = """
import os, pathlib, tempfile
import causal_shaping as cs

engines = [cs.open_logs("../a.parquet", memory_limit="50MB").rows.get_backend() for _ in range(2)]
for engine in engines:
    engine.raw_sql("CREATE TEMP TABLE large AS SELECT hash(range) AS number FROM range(10000000)").fetchall()
spilled = [path for path in pathlib.Path(tempfile.gettempdir()).glob("causal_shaping_*/*/*") if path.stat().st_size]
print(len({path.parent for path in spilled}), os.listdir())
"""


def test_engines_spill_to_temporary_folders_of_their_own_that_are_removed(tmp_path):
    LOGS.save(tmp_path / "a.parquet")
    (tmp_path / "spill.py").write_text(SPILL)
    for name in ("working", "temporary"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        [sys.executable, "../spill.py"],
        cwd=tmp_path / "working",
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split(maxsplit=1) == ["2", "[]\n"]
    assert not list((tmp_path / "temporary").glob("causal_shaping_*"))


def test_logs_are_counted_where_no_temporary_folder_can_be_written_to(tmp_path, monkeypatch):
    def fail():
        raise FileNotFoundError(2, "No usable temporary directory found")

    LOGS.save(tmp_path / "a.parquet")
    monkeypatch.setattr(engine, "_scratch", fail)
    assert cs.count(tmp_path / "a.parquet").n.sum() == 300
