"""The Python of the README and of the tour runs as it stands."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import causal_shaping as cs

ROOT = Path(__file__).parents[1]


def run_snippets(page, count):
    """Run the Python of a page, block after block."""
    snippets = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert len(snippets) == count
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(page), "exec"), names)
    return names


@pytest.mark.filterwarnings("ignore:The potential has steps")
def test_the_ten_lines_of_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    world = cs.load_world("lavacross-easy")
    for name in ("bad", "random"):  # as the text says to make them
        world.collect(name, steps=300_000).save(f"{name}.parquet")
    pq.write_table(cs.load_world("windy-field").collect("random", 2_000), "field.parquet")
    names = run_snippets(ROOT / "README.md", 2)
    out = capsys.readouterr().out
    assert "bad and random disagree on what right does in (3, 1)" in out
    assert "These logs help" in out
    assert "This assumes:" in out
    assert names["run"].steps == 5_000
    assert "It assumes:" in out
    assert isinstance(names["env"].potential, cs.FittedPotential)


def test_the_snippets_of_the_tour_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = run_snippets(ROOT / "docs" / "tour.md", 10)
    out = capsys.readouterr().out
    assert "bad and random disagree on what right does in (3, 1): it leads to (4, 1) in 97% against 19%" in out
    assert "confounding of 5.53 reconciles them" in out
    assert "These logs help" in out
    assert names["never_try"].any()
    assert "(1, 1):" in out
    assert (tmp_path / "easy.svg").exists()
