"""The command line leads to the counts: `train --potential` warns, `ceilings` names the command."""

import json
import re
import warnings

import pytest

from causal_shaping.cli._messages import in_options

WARNING = (
    "warning: Without --learner, train uses Q-UCB Shaping, which as printed in the paper can lock "
    "in: it may keep repeating the first action it tried for the rest of the run. The counts of "
    "your logs are the better input: `train --counts counts.parquet`, with the file that `ceilings "
    "--counts counts.parquet` writes.\n"
)
TRAIN = ("train", "lavacross-easy", "--steps", 200, "--seeds", 3)


@pytest.fixture(scope="module")
def files(easy):
    """Ceilings, and the counts that they were computed from."""
    import causal_shaping as cs

    counts = cs.count([easy / "bad.parquet", easy / "random.parquet"])
    counts.save(easy / "counts.parquet")
    cs.value_ceilings(counts, 20, -0.1).save(easy / "phi.parquet")
    return easy / "phi.parquet", easy / "counts.parquet"


def test_a_potential_without_a_learner_is_warned_of_once(run, files, tmp_path):
    phi, _ = files
    code, out, err = run(*TRAIN, "--potential", phi, "-o", tmp_path / "runs")
    assert (code, err) == (0, WARNING)  # three seeds, beside three of a zero potential
    assert "zero potential (q-ucb-shaping)" in out
    code, out, err = run(*TRAIN, "--potential", phi, "-o", tmp_path / "runs", "--json")
    assert (code, err) == (0, WARNING)
    assert json.loads(out)["settings"]["learner"] == "q-ucb-shaping"


def test_warnings_as_errors_do_not_stop_it(run, files, tmp_path):
    with warnings.catch_warnings(action="error"):
        assert run(*TRAIN, "--potential", files[0], "-o", tmp_path)[0] == 0


def test_a_named_learner_counts_and_nothing_at_all_are_silent(run, files, tmp_path):
    phi, counts = files
    for i, given in enumerate(
        [
            ("--potential", phi, "--learner", "q-ucb-shaping"),
            ("--potential", phi, "--learner", "q-ucb"),
            ("--counts", counts),
            (),
        ]
    ):
        code, _, err = run(*TRAIN, *given, "-o", tmp_path / str(i))
        assert (code, err) == (0, ""), given


def test_the_warning_has_two_sentences_in_words_of_the_command_line():
    _, _, text = WARNING.strip().partition(": ")
    first, second = re.split(r"(?<=[.]) (?=[A-Z])", text)
    assert "can lock in: it may keep repeating the first action it tried" in first
    assert "`train --counts counts.parquet`" in second
    assert in_options(text, []) == text


def test_the_warning_of_the_library_is_understood_on_the_command_line_too():
    from causal_shaping.learners.rules import warn_of_default_learner
    from causal_shaping.shaping.potentials import Potential
    from causal_shaping.worlds import load_world

    with pytest.warns(match="lock in") as caught:
        warn_of_default_learner(None, Potential.zero(load_world("lavacross-easy")), 1)
    spoken = in_options(str(caught[0].message), [])
    assert spoken.startswith("Without --learner, train uses Q-UCB Shaping, which as printed")
    assert spoken.endswith("The counts of your logs are the better input.")


def test_the_help_of_train_says_that_counts_are_the_better_input(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = run("train", "--help")
    text = " ".join(re.sub(r"[│\s]+", " ", out).split())
    assert "If you have the counts, --counts is the better input" in text
    assert "can lock in" in text
