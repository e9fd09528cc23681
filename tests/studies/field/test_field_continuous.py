"""Figures of agents in worlds whose states cannot be listed, on the page."""

import json
import shutil
from dataclasses import replace

import pytest

from causal_shaping.errors import FileError
from studies.field.continuous import continuous_table, read_agents
from studies.field.page import write_field_page

PARTS = {
    "a <b>; scale": {"random": 0.0, "best": 10.0},
    "a <b>; none; no logs; 0": {"returns": [9.0, 0.0, 0.0, 1.0, 3.0, 8.0], "seconds": 1.0, "date": "2026-01-02"},
    "a <b>; good; ceiling; 0": {"returns": [9.0, 4.0, 4.0, 4.0, 4.0, 9.0], "seconds": 1.0, "date": "2026-01-05"},
    "a <b>; good; ceiling; 1": {"returns": [9.0, 6.0, 6.0, 6.0, 6.0, 9.0], "seconds": 1.0},
    "a <b>; good; fit": {"seconds": 3.0},
    "unscaled; none; no logs; 0": {"returns": [1.0] * 6},
}


@pytest.fixture
def figures(tmp_path):
    path = tmp_path / "agents.json"
    path.write_text(json.dumps({"version": 3, "parts": PARTS}))
    return path


def test_scores_are_between_acting_at_random_and_the_optimum(figures):
    table = continuous_table(read_agents(figures))
    assert table.columns == ["", "logs", "a <b>", "all worlds"]
    none, good = table.rows
    assert none == ["no logs", "none", "0.10\n0.24", "0.10\n0.24"]
    assert good[2].startswith("0.50 (0.40 to 0.60)\n0.58 (0.50 to 0.66)")
    assert "1 to 2 seeds" in table.caption
    assert "2026-01-02 to 2026-01-05" in table.caption
    assert table.records[0] == {
        "case": "a <b>",
        "logs": "none",
        "arm": "no logs",
        "seeds": 1,
        "early": pytest.approx(0.1),
        "all": pytest.approx(0.24),
    }


def test_the_page_shows_them_and_escapes_what_the_file_holds(small, figures, tmp_path):
    assert "studies.field.fitted" in (small.folder / "index.html").read_text()
    copy = shutil.copytree(small.folder, tmp_path / "copy")
    write_field_page(replace(small, folder=copy), agents=read_agents(figures))
    text = (copy / "index.html").read_text()
    assert 'id="table-continuous"' in text
    assert "a &lt;b&gt;" in text
    assert "<b>; " not in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"parts": 3}',
        '{"parts": {"a; none; b; 0": {"returns": 3}, "a; scale": {"random": 0, "best": 1}}}',
        '{"parts": {"a; none; b; 0": {"returns": ["x"]}, "a; scale": {"random": 0, "best": 1}}}',
        '{"parts": {"a; b": {"returns": [1]}}}',
        '{"parts": {"a; none; b; 0": {"returns": [1, 2]}, "a; scale": {"random": 0}}}',
        "[" * 100_000,
    ],
)
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "agents.json"
    path.write_text(text)
    with pytest.raises(FileError, match="holds no figures of"):
        read_agents(path)
