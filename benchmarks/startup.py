"""What starting costs: CPU time of `import causal_shaping` and of the command, as multiples of `import numpy`.

All are measured in one run, each in processes of its own, in turn, so that a busy machine hits them alike; the fastest
of each counts. Modules that have no business on these paths are listed.

    python benchmarks/startup.py [--runs 15]
"""

import argparse
import resource
import subprocess
import sys
import tempfile

FORBIDDEN = ("matplotlib", "torch", "minigrid", "pandas", "jinja2", "scipy.stats")
COMMAND = "import sys; sys.argv = ['causal-shaping', {argument!r}]; from causal_shaping.cli import main; main()"
STARTS = {
    "import numpy": "import numpy",
    "import causal_shaping": "import causal_shaping",
    "causal-shaping --version": COMMAND.format(argument="--version"),
    "causal-shaping --help": COMMAND.format(argument="--help"),
}
TARGETS = {"import causal_shaping": 3.0, "causal-shaping --version": 4.0}


def cpu_seconds(code):
    """Return the CPU time of a new process that runs some code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def modules_of(code):
    """Return the forbidden modules that some code loads."""
    with tempfile.NamedTemporaryFile("w+") as log:
        listing = f"import atexit, sys\natexit.register(lambda: open({log.name!r}, 'w').write(' '.join(sys.modules)))\n"
        subprocess.run([sys.executable, "-c", listing + code], check=True, stdout=subprocess.DEVNULL)
        loaded = set(log.read().split())
    return [name for name in FORBIDDEN if name in loaded]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    for code in STARTS.values():  # compiled files and the disk's cache
        cpu_seconds(code)
    found = {name: [] for name in STARTS}
    for _ in range(runs):
        for name, code in STARTS.items():
            found[name].append(cpu_seconds(code))
    unit = min(found["import numpy"])
    print(f"{'':28} CPU s   times numpy   at most   forbidden modules")
    for name, code in STARTS.items():
        fastest = min(found[name])
        target = f"{TARGETS[name]:g}" if name in TARGETS else ""
        print(f"{name:28} {fastest:5.2f}   {fastest / unit:11.2f}   {target:7}   {', '.join(modules_of(code))}")


if __name__ == "__main__":
    main()
