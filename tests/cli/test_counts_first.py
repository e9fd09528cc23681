"""The command line leads to the counts: `train --potential` warns, `ceilings` names the command."""

import json
import shlex
import warnings

import pytest
from test_commands import BOUNDED

from causal_shaping.learners.rules import CAN_LOCK_IN

WARNING = f"warning: {CAN_LOCK_IN}\n"
TRAIN = ("train", "lavacross-easy", "--steps", 200, "--seeds", 3)


def test_a_potential_without_a_learner_is_warned_of_once(run, files, tmp_path):
    phi, _ = files
    code, out, err = run(*TRAIN, "--potential", phi, "-o", tmp_path / "runs")
    assert (code, err) == (0, WARNING)  # three seeds, beside three of a zero potential
    assert "zero potential (q-ucb-shaping)" in out
    code, out, err = run(*TRAIN, "--potential", phi, "-o", tmp_path / "runs", "--json")
    assert (code, err) == (0, WARNING)
    assert json.loads(out)["settings"]["learner"] == "q-ucb-shaping"


def test_warnings_as_errors_do_not_stop_it(done, files, tmp_path):
    with warnings.catch_warnings(action="error"):
        done(*TRAIN, "--potential", files[0], "-o", tmp_path)


def test_a_named_learner_counts_and_nothing_at_all_are_silent(run, files, tmp_path):
    phi, counts = files
    learners = [("--potential", phi, "--learner", name) for name in ("q-ucb-shaping", "q-ucb")]
    for i, given in enumerate([*learners, ("--counts", counts), ()]):
        code, _, err = run(*TRAIN, *given, "-o", tmp_path / str(i))
        assert (code, err) == (0, ""), given


@pytest.mark.parametrize("written", [None, "counts.parquet", "my counts.parquet"])
def test_ceilings_name_training_from_the_counts_as_a_next_command(quiet, easy, tmp_path, written):
    logs, options = [easy / "bad.parquet", easy / "random.parquet"], []
    if written is not None:
        options = ["--counts", tmp_path / written]
    out = quiet("ceilings", *logs, *BOUNDED, *options)
    shown = "counts.parquet" if written is None else shlex.quote(str(tmp_path / written))
    _, _, after = out.partition("\nNext, with the same logs and columns:\n")
    worth, train, note, *_ = after.splitlines()
    assert "causal-shaping worth LOGS... --horizon 20 --reward-max -0.1 --steps N" in worth
    assert worth.endswith("what they are expected to save an agent")
    assert train.startswith(f"  causal-shaping train WORLD --counts {shown} -o runs/")
    assert train.endswith("  an agent that starts from these logs")
    assert "WORLD is the id of your environment" in note
    assert ("add --counts counts.parquet to this command" in note) == (written is None)
    if written is not None:  # the command runs as it is printed, for the world of the logs
        command = train.removesuffix("an agent that starts from these logs")
        command = command.replace("WORLD", "lavacross-easy")
        command = command.replace("runs/", shlex.quote(str(tmp_path / "runs")))
        out = quiet(*shlex.split(command)[1:], "--steps", 200, "--seeds", 1)
        assert "(posterior)" in out


def test_counts_by_step_are_trained_from_by_step(done, easy, tmp_path):
    counts = tmp_path / "counts.parquet"
    logs = [easy / "bad.parquet", easy / "random.parquet"]
    out = done("ceilings", *logs, *BOUNDED, "--counts", counts, "--step-indexed")
    (line,) = (line for line in out.splitlines() if "train WORLD" in line)
    assert " --step-indexed " in line
    command = line.partition("  an agent")[0].replace("WORLD", "lavacross-easy")
    command = command.replace("runs/", shlex.quote(str(tmp_path / "runs")))
    done(*shlex.split(command)[1:], "--steps", 200, "--seeds", 1)
