"""The tools of development: what must not be committed is found, and long checks resume."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / ".ci"))

import check_leaks  # noqa: E402

from studies import parts  # noqa: E402
from studies.calibration import __main__ as calibration  # noqa: E402


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.py", "folder = '/" + "home/ann/logs'", "a path of one machine"),
        ("a.md", "in C:\\" + "Users\\ann", "a path of one machine"),
        ("setup.cfg", "extra-ind" + "ex-url = x", "a package index"),
        ("a.txt", "https://host.example/" + "simple", "a package index"),
        ("a.pem", "-----BEG" + "IN RSA PRIVATE KEY-----", "a secret"),
        ("a.py", "<" * 7 + " HEAD", "a merge marker"),
        ("constraints.txt", "numpy @ file", "an address among versions"),
        ("poetry.lock", "https" + "://files.example/numpy.whl", "an address among versions"),
        ("large.bin", "x" * 1_000_001, "more than 1,000,000"),
    ],
)
def test_what_must_not_be_committed_is_found(tmp_path, capsys, name, text, found):
    (tmp_path / name).write_text(f"first line\n{text}\n")
    assert check_leaks.main([str(tmp_path / name)]) == 1
    assert found in capsys.readouterr().out


def test_an_honest_file_is_let_through(tmp_path):
    path = tmp_path / "constraints.txt"
    path.write_text("numpy==2.4.6\nscipy==1.17.1\n")
    assert check_leaks.main([str(path)]) == 0


def test_a_check_runs_what_its_figures_lack_and_says_whether_it_holds(tmp_path, monkeypatch):
    ran = []

    def part(name):
        ran.append(name)
        return {"figure": len(ran)}

    def holds(parts):
        """It holds."""
        return parts["b"]["figure"] == 2

    check = calibration.Check(["a", "b"], part, holds)
    monkeypatch.setattr(calibration, "CHECKS", {"check": check})
    monkeypatch.setattr(calibration, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(parts, "WORK", tmp_path)
    assert calibration.run("check")
    assert calibration.run("check")
    assert ran == ["a", "b"]
    assert parts.figures(tmp_path / "figures" / "check.json", 1) == {"a": {"figure": 1}, "b": {"figure": 2}}
    assert not calibration.run("check", again=True)


@pytest.mark.parametrize("name", calibration.CHECKS)
def test_every_part_of_a_check_is_known_and_has_figures(name):
    check = calibration.CHECKS[name]
    assert check.parts
    assert check.text.endswith(".")
    if name != "properties":  # of which nothing is kept: other examples each time
        assert set(check.parts) & set(parts.figures(calibration.FIGURES / f"{name}.json", check.version))


def test_the_version_stands_in_one_place():
    import tomllib

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changes, cited = (ROOT / "CHANGELOG.md").read_text(), (ROOT / "CITATION.cff").read_text()
    released = re.search(r"^## (\d\S+)", changes, flags=re.MULTILINE)[1]
    assert f"\nversion: {released}\n" in cited
    assert declared == released or (".dev" in declared and "## Unreleased" in changes)
    for path in (ROOT / "src").rglob("*.py"):
        assert f'"{declared}"' not in path.read_text(), path
