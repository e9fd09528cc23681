"""The README's Python runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_snippets_of_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(snippets) == 9
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
    out = capsys.readouterr().out
    assert "bad and random disagree on what right does in (3, 1): it leads to (4, 1) in 97% against 19%" in out
    assert "confounding of 5.53 reconciles them" in out
    assert "These logs help" in out
    assert names["never_try"].any()
    assert "(1, 1):" in out
    assert (tmp_path / "easy.svg").exists()
