"""The README's Python runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_snippets_of_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(snippets) == 3
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
    assert "(1, 1)" in capsys.readouterr().out
    assert (tmp_path / "easy.svg").exists()
