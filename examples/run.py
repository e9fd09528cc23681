"""Run every example and notebook in an empty folder, and time each: `python examples/run.py [NAME...]`."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
DIFFER = ("continuous", "spark")
"""The output of these depends on the machine: networks and trees are fitted, and Spark may be missing."""

EXECUTE = (
    "import sys, nbformat, nbclient; "
    "nbclient.NotebookClient(nbformat.read(sys.argv[1], as_version=4), timeout=600, kernel_name='python3').execute()"
)


def examples():
    """Every script, then every notebook."""
    scripts = [path for path in sorted(HERE.glob("*.py")) if path.name != "run.py"]
    return [*scripts, *sorted(HERE.glob("notebooks/*.ipynb"))]


def shown(path):
    """The output that the page of an example shows: its blocks of text."""
    page = HERE.parent / "docs" / "tutorials" / f"{path.stem.replace('_', '-')}.md"
    return re.findall(r"^```text\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE) if page.exists() else []


def differences(path, printed):
    """Return the lines that the page shows and the example did not print; a block with no printed line is input."""
    if path.stem in DIFFER:
        return []
    blocks = [block.splitlines() for block in shown(path)]
    return [
        line
        for block in blocks
        if any(line.strip() and line in printed for line in block)
        for line in block
        if line.strip() and line not in printed
    ]


def run(path):
    """Run one in a folder of its own; return whether it succeeded, and how long it took."""
    command = [sys.executable, "-c", EXECUTE, str(path)] if path.suffix == ".ipynb" else [sys.executable, str(path)]
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-4000:], sep="\n", file=sys.stderr)
    other = differences(path, done.stdout) if done.returncode == 0 else []
    for line in other:
        print(f"The page of {path.name} shows a line that was not printed: {line}", file=sys.stderr)
    return done.returncode == 0 and not other, time.perf_counter() - begin


def main():
    """Run the named ones, or all."""
    wanted, well = sys.argv[1:], True
    for path in examples():
        if not wanted or path.stem in wanted:
            ran, seconds = run(path)
            well &= ran
            print(f"{path.relative_to(HERE)}: {'ran' if ran else 'FAILED'} in {seconds:.1f} s", flush=True)
    sys.exit(not well)


if __name__ == "__main__":
    main()
