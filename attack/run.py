"""Attack this package: mutated files, hostile names and command lines, kills and faults. What it finds is a defect.

    make attack                          # some minutes
    make attack ARGS='--long'            # hours: 100,000 files, 500 kills
    make attack ARGS='--only kills --seed 3'

Each attack prints its seed, what it tried, and every defect, so that it can be made again; the exit code is 1 if there
is one. The last run's summary is kept in `summary.txt` in `attack/work`. `make mutants` attacks the tests instead.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
SHORT = {
    "files": ["--trials", "150"],
    "names": [],
    "commands": ["--number", "500"],
    "kills": ["--rounds", "1", "--renames", "6"],
}
LONG = {
    "files": ["--trials", "8000"],
    "names": [],
    "commands": ["--number", "20000"],
    "kills": ["--rounds", "25"],
}


def main() -> int:
    """Run the attacks one after the other; return 1 if one of them found a defect."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="hours instead of minutes")
    parser.add_argument("--only", choices=SHORT, help="one of the attacks")
    parser.add_argument("--seed", type=int, default=0, help="of what is random (default: 0)")
    given = parser.parse_args()
    summary: list[str] = []
    for name, options in (LONG if given.long else SHORT).items():
        if given.only in (None, name):
            seed = [] if name == "names" else ["--seed", str(given.seed)]
            print(f"== {name} {' '.join(options + seed)}", flush=True)
            began = time.monotonic()
            code = subprocess.run([sys.executable, HERE / f"{name}.py", *options, *seed], check=False).returncode
            ending = "nothing found" if code == 0 else "DEFECTS FOUND" if code == 1 else f"stopped with {code}"
            summary.append(f"{name} {' '.join(options + seed)}: {ending}, {time.monotonic() - began:.0f} s")
    print("\n".join(["== summary", *summary]))
    (HERE / "work").mkdir(exist_ok=True)
    (HERE / "work" / "summary.txt").write_text("\n".join(summary) + "\n")
    return int(any(not line.split(": ")[1].startswith("nothing") for line in summary))


if __name__ == "__main__":
    sys.exit(main())
