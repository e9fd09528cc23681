"""Find what must not be committed: paths and hosts of one machine, secrets, merge markers, large files.

    python .ci/check_leaks.py [FILE...]

Without files it looks at all that git knows. It prints a line per finding and exits with 1 if there is any.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

LARGEST = 1_000_000
"""Bytes of a file that may be committed."""

LOCKED = re.compile(r"(^|/)(constraints|requirements)[^/]*\.txt$|\.lock$")
"""Files that pin versions: names and versions, no addresses."""

# Letters in brackets keep these lines from finding themselves.
PATTERNS = {
    "a path of one machine": re.compile(r"(?<![\w.:/~-])/(?:[h]ome|[U]sers|[r]oot|[w]ork)/\w|\b[A-Z]:\\[U]sers\\\w"),
    "a package index": re.compile(r"[i]ndex-url|[f]ind-links|[t]rusted-host|[a]rtifactory|://[^/\s]*(?<!/)/[s]imple\b"),
    "a secret": re.compile(r"[B]EGIN [A-Z ]*PRIVATE KEY|\b[g]h[pousr]_\w{20}|\b[A]KIA[0-9A-Z]{16}\b"),
    "a merge marker": re.compile(r"^(?:[<]{7}|[>]{7}|[|]{7})(?: |$)|^[=]{7}$"),
}
ADDRESS = re.compile(r"://| @ ")


def leaks(path: Path, name: str) -> Iterator[str]:
    """Yield what is wrong with a file, a line each."""
    if path.stat().st_size > LARGEST:
        yield f"{name}: {path.stat().st_size:,} bytes, more than {LARGEST:,}"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return
    locked = LOCKED.search(name)
    for number, line in enumerate(lines, 1):
        found = [what for what, pattern in PATTERNS.items() if pattern.search(line)]
        if locked and ADDRESS.search(line):
            found.append("an address among versions")
        for what in found:
            yield f"{name}:{number}: {what}: {line.strip()[:100]}"


def committed() -> list[str]:
    """Return the files that git knows, new ones included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def main(names: Sequence[str]) -> int:
    """Print what is found; return the exit code."""
    found = [leak for name in names or committed() if Path(name).is_file() for leak in leaks(Path(name), name)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
