"""The command line: a file for each command, which parses, calls and prints.

A command imports what it needs when it is called, so that `--version` and `--help` answer at once.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from causal_shaping._leave import INTERRUPTED, leave_quietly
from causal_shaping._removed import REMOVED_COMMANDS
from causal_shaping.cli import ceilings, collect, demo, fit, inspect, sensitivity, train, worlds, worth
from causal_shaping.cli._options import flag
from causal_shaping.cli._terminal import complain, warned_safely
from causal_shaping.errors import CausalShapingError

JOBS = """\
causal-shaping {version}: learn faster from somebody else's logs, without being misled by what they leave out.

See it first, in a minute:
       causal-shaping demo

It writes three CSV files, demo/ana.csv, demo/ben.csv and demo/carla.csv. The three jobs, on these files:

  1. What do the logs cover, and do they contradict each other?
       causal-shaping inspect demo/ana.csv demo/ben.csv demo/carla.csv --episode trip --step second --state x,y
                      --action move --reward score --terminated outcome=goal,lava --truncated time_up
  2. What do they prove? And count them.
       causal-shaping ceilings demo/ana.csv demo/ben.csv demo/carla.csv --episode trip --step second --state x,y
                      --action move --reward score --terminated outcome=goal,lava --truncated time_up
                      --horizon 20 --reward-max -0.1 --counts counts.parquet -o phi.parquet
  3. Use them: train an agent that starts from the counts,
       causal-shaping train lavacross-easy --counts counts.parquet --seeds 3 -o runs/
     or shape the reward of any Gymnasium agent, in Python.
       env = causal_shaping.ShapeReward(env, "phi.parquet")

For files of your own, give your own columns. All commands: causal-shaping --help.
One of them, with an example: causal-shaping COMMAND --help.
"""
"""What the command says if it is called alone."""

UsageError: Any = typer.BadParameter.__base__
"""Click's, which some versions of Typer bring along."""


class _PlainFlags:
    """Shows flags as flags: without the type of a value that they do not take."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters."""
        found = super().get_params(ctx)  # type: ignore[misc]
        for parameter in found:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return found


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """The commands together."""


app = typer.Typer(
    name="causal-shaping",
    cls=Group,
    help="Reward shaping from confounded logs: what somebody else's logs are worth, and how to use them.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    demo.demo,
    worlds.worlds,
    collect.collect,
    inspect.inspect,
    ceilings.ceilings,
    fit.fit,
    sensitivity.sensitivity,
    worth.worth,
    train.train,
):
    app.command(cls=Command)(_command)


@app.callback()
def _root(context: typer.Context, wanted: Annotated[bool, flag("--version", "Show the version.")] = False) -> None:
    if wanted:
        print(f"causal-shaping {version('causal-shaping')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(JOBS.format(version=version("causal-shaping")), end="")


def command() -> None:
    """Run the command line in a process of its own, which ends quietly."""
    try:
        main()
    except SystemExit as end:
        leave_quietly(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise


def _stand_in() -> None:
    """Stand in for streams that the caller closed: the next file that is opened would get their numbers."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open("r" if name == "stdin" else "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)


@cache
def _commands() -> Any:
    """Return what parses and runs; a process that calls `main` more than once builds it once."""
    return typer.main.get_command(app)


def _refuse_removed_commands() -> None:
    """Name what replaces a command of an earlier version, whatever options follow it."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in REMOVED_COMMANDS:
        complain("error", f"causal-shaping {name} is {REMOVED_COMMANDS[name]}")
        sys.exit(2)


def main() -> None:
    """Run the command line; what the package refuses ends with its message and exit code 2, Ctrl-C with 130."""
    _stand_in()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # what a terminal cannot show is no reason to stop
    _refuse_removed_commands()
    try:
        with warned_safely():
            sys.exit(_commands()(prog_name="causal-shaping", standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    except UsageError as error:
        where = error.ctx.command_path if error.ctx else "causal-shaping"
        complain("error", f"{error.format_message()} See {where} --help.")
    except CausalShapingError as error:
        complain("error", error)
    except OSError as error:
        complain("error", f"{error.filename}: {error.strerror}." if error.filename and error.strerror else error)
    sys.exit(2)
