"""Programs in processes of their own, forked from one that has imported most of what they need.

Starting Python and importing the package takes seconds, a fork next to nothing. What is about starting or about ending
starts anew, as in `tests/test_startup.py`: a fork is over with its program, without Python's own end.
"""

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

REQUIRED = "import gymnasium, ibis.backends.duckdb, numba, pyarrow.parquet, rich.console, scipy.sparse, typer"
"""What the package always needs, and nothing of its own."""

PACKAGE = f"""{REQUIRED}, pandas
import causal_shaping as cs, causal_shaping.bounds, causal_shaping.cli, causal_shaping.logs
cs.load_world("lavacross-easy").collect("good", 1)  # compiled code is ready
"""
COMMAND = "from causal_shaping.cli import main; main()"

SERVER = """
import json, os, sys, traceback
exec(sys.argv[1], {})
for line in sys.stdin:
    printed, folder, program, *arguments = json.loads(line)
    if process := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
        continue
    for number, path in enumerate((os.devnull, f"{printed}/out", f"{printed}/err")):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
    os.chdir(folder)
    sys.argv, code = ["-c", *arguments], 0
    try:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
os._exit(0)
"""


@cache
def _server(prepared):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    server = subprocess.Popen([sys.executable, "-c", SERVER, prepared], **pipes)
    atexit.register(server.communicate)
    return server


def run(program, *arguments, cwd=".", prepared=PACKAGE):
    """Run a program in a fork of a process that has run another one; return its exit code and what it printed."""
    server = _server(prepared)
    with TemporaryDirectory() as printed:
        asked = [printed, os.path.abspath(cwd), program, *map(str, arguments)]
        print(json.dumps(asked), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        out, err = (Path(printed, name).read_text() for name in ("out", "err"))
    return subprocess.CompletedProcess([program, *arguments], code, out, err)
