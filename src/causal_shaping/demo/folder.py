"""The folder of the demo: it holds what the demo wrote, and nothing of anybody else is replaced."""

from __future__ import annotations

import json
from pathlib import Path

from causal_shaping.demo.rover import OPERATORS
from causal_shaping.errors import FileError
from causal_shaping.io.files import TEMPORARY, check_folder, write_text
from causal_shaping.io.inputs import read_json, with_checksum

LIST, COUNTS, PAGE = "demo.json", "counts.parquet", "index.html"
FILES = (LIST, *(f"{name}.csv" for name in OPERATORS), COUNTS, PAGE)
"""What the demo writes; `LIST` is written first and names the others."""


def claim_folder(folder: Path) -> None:
    """Make the folder, or take it over from an earlier demo; refuse a folder with files of others."""
    check_folder(folder)
    other = "Choose another folder: causal-shaping demo --output FOLDER."
    if (folder / LIST).exists():
        own = read_json(folder / LIST, other).get("files", [])
    else:
        own = []
        held = folder.iterdir() if folder.exists() else ()
        if any(not path.name.startswith(TEMPORARY) for path in held):
            raise FileError(f"{folder} holds files that the demo did not write. {other}")
    for name in FILES:
        if name not in own and (folder / name).exists():
            raise FileError(f"{folder / name} was not written by the demo. {other}")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(with_checksum({"files": list(FILES)}), indent=2)
    write_text(folder / LIST, text + "\n", [".json"])
