"""What commands write: text that cannot harm a terminal, tables, and what is refused before anything is computed."""

import csv
import json
import sys
from inspect import signature

import pyarrow.parquet as pq
import pytest
import typer
from test_commands import BOUNDED

import causal_shaping as cs
from causal_shaping._checks import escaped
from causal_shaping.cli import app
from causal_shaping.cli.train import LEARNERS
from causal_shaping.logs import open_logs

EVIL = "\x1b[2J[bold]red[/bold]\u202e<script>:smile:"


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_control_characters_are_shown_and_markup_is_text(run, tmp_path):
    space = cs.Space([EVIL, "well"], ["drug", "none"])
    for name in ("a", EVIL):
        logs = cs.Logs(space, name, [0, 1], [0, 0], [0, 0], [0, 1], [1.0, 0.5], [1, 1], [True, True], [False, False])
        logs.save(tmp_path / f"{len(name)}.parquet")
    files = sorted(tmp_path.iterdir())
    for command in (["inspect", *files], ["ceilings", *files, "--horizon", 3, "--reward-max", 1]):
        code, out, err = run(*command)
        assert code == 0, err
        assert "\x1b" not in out + err
        assert "\u202e" not in out + err
        assert r"\x1b[2J[bold]red[/bold]\u202e<script>:smile:" in out.replace("\n", "")


def test_control_characters_of_arguments_are_shown(refused):
    for command in (["inspect", "\x1b[2J.csv"], ["worlds", "a\nb"], ["worlds", "a", "\x1bb"]):
        err = refused(*command)
        assert "\x1b" not in err
        assert err.count("\n") == 1


def test_text_is_escaped_but_letters_of_all_scripts_stay():
    assert escaped("Zürich 東京 \u00e9\t\x07") == "Zürich 東京 é\\t\\x07"
    assert escaped("a\nb", keep="\n") == "a\nb"


def test_defaults_that_the_help_spells_out_are_those_of_the_library():
    from causal_shaping.bounds.sensitivity import GAMMAS
    from causal_shaping.learners.rules import LEARNERS as KNOWN

    commands = typer.main.get_command(app).commands
    defaults = {(name, item.name): item.default for name, command in commands.items() for item in command.params}
    assert sorted(LEARNERS) == sorted(KNOWN)
    assert [float(gamma) for gamma in defaults["sensitivity", "confounding"].split(",")] == list(GAMMAS)
    assert defaults["inspect", "level"] == signature(cs.contradictions).parameters["level"].default
    for name in ("support", "confidence", "discount", "rarest", "value_max", "stationary", "method"):
        assert defaults["ceilings", name] == signature(cs.value_ceilings).parameters[name].default
    for name in ("horizon", "discount", "support", "expectile", "members", "seed", "most_rows"):
        assert defaults["fit", name] == signature(cs.fit_ceilings).parameters[name].default
    for name in ("action", "reward", "episode", "step", "first_step", "terminated", "truncated"):
        assert defaults["inspect", name] == signature(open_logs).parameters[name].default


@pytest.mark.parametrize("flag", ["died,cured", "outcome=died,cured", "died=1,cured=1", "outcome=died,cured=1"])
def test_several_columns_and_values_end_episodes(done, tmp_path, flag):
    rows = ["patient,day,stage,drug,score,outcome,died,cured"]
    for i, outcome in enumerate(["died", "cured", "left"]):
        rows += [f"{i},1,a,x,0,on,0,0", f"{i},2,b,y,1,{outcome},{int(i == 0)},{int(i == 1)}"]
    (tmp_path / "ward.csv").write_text("\n".join(rows) + "\n")
    columns = ("--episode", "patient", "--step", "day", "--first-step", 1, "--state", "stage", "--action", "drug")
    out = done("inspect", tmp_path / "ward.csv", *columns, "--reward", "score", "--terminated", flag, "--json")
    assert json.loads(out)["sources"][0]["terminated"] == 2


def test_missing_values_get_a_label(done, refused, tmp_path):
    text = "episode,step,state,action,reward,terminated\n0,0,sick,x,1,0\n0,1,,y,1,1\n1,0,sick,y,0,1\n"
    (tmp_path / "ward.csv").write_text(text)
    assert "set missing to a label" in refused("inspect", tmp_path / "ward.csv")
    out = done("inspect", tmp_path / "ward.csv", "--missing", "unknown", "--json")
    assert "unknown" in out


def test_every_command_that_computes_writes_a_table(done, easy, tmp_path):
    logs = (easy / "bad.parquet", easy / "random.parquet")
    table, parquet = tmp_path / "x.csv", tmp_path / "x.parquet"
    done("inspect", *logs, "-o", table)
    rows = rows_of(table)
    assert sum(float(row["visits"]) for row in rows) == 40_000
    assert {"source", "x", "y", "visits"} <= set(rows[0])
    done("inspect", *logs, "-o", parquet)
    assert pq.read_table(parquet).num_rows == len(rows)
    out = done("ceilings", *logs, *BOUNDED, "-o", table)
    assert f"Ceilings written to {table}." in out
    expected = cs.value_ceilings(cs.count(list(logs)), 20, -0.1)
    rows = rows_of(table)
    assert [float(row["value"]) for row in rows] == expected.values.ravel().tolist()


def test_training_stands_beside_the_zero_potential_and_goes_on(done, quiet, easy, tmp_path):
    phi, runs = tmp_path / "phi.parquet", tmp_path / "runs"
    done("ceilings", easy / "bad.parquet", easy / "random.parquet", *BOUNDED, "-o", phi)
    options = ("train", "lavacross-easy", "--potential", phi, "--steps", 500, "--learner", "q-ucb-shaping")
    out = quiet(*options, "-o", runs, "--seeds", 2, "--png", tmp_path / "regret.png")
    for words in ("phi.parquet (q-ucb-shaping)", "zero potential", ": 2 seeds of 500 steps", "with an optimal action"):
        assert words in out
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")
    rows = rows_of(runs / "seeds.csv")
    assert [row["potential"] for row in rows] == ["phi.parquet"] * 2 + ["zero potential"] * 2
    assert [row["seed"] for row in rows] == [*"0101"]
    world = cs.load_world("lavacross-easy")
    without = cs.train(world, learner="q-ucb-shaping", steps=500, seed=1)
    assert float(rows[3]["regret"]) == without.step_regret[-1]
    assert (runs / "zero" / "seed-1.parquet").exists()
    found = json.loads(done(*options, "-o", runs, "--seeds", 3, "--json"))
    assert [one["regret"] for one in found["zero"]["seeds"]][:2] == [float(row["regret"]) for row in rows[2:]]
    with_phi = cs.train(world, cs.Ceilings.load(phi), learner="q-ucb-shaping", steps=500, seed=2)
    assert found["seeds"][2]["regret"] == with_phi.step_regret[-1]
    out = done(*options, "-o", tmp_path / "alone", "--no-compare", "--seeds", 1)
    assert "zero potential" not in out
    assert not (tmp_path / "alone" / "zero").exists()


def test_the_learner_posterior_starts_from_counts_and_stands_beside_learning_without_logs(done, easy, tmp_path):
    counts, runs = tmp_path / "counts.parquet", tmp_path / "runs"
    done("ceilings", easy / "bad.parquet", easy / "random.parquet", *BOUNDED, "--counts", counts)
    options = ("train", "lavacross-easy", "--counts", counts, "--steps", 500, "--seeds", 2)
    out = done(*options, "-o", runs)
    names = ("counts.parquet (posterior)", "no logs (posterior)", "zero potential (q-ucb-shaping)")
    assert all(name.partition(" (")[0] in out for name in names)
    rows = rows_of(runs / "seeds.csv")
    assert [row["learner"] for row in rows] == ["posterior"] * 4 + ["q-ucb-shaping"] * 2
    world = cs.load_world("lavacross-easy")
    belief = cs.posterior(cs.Counts.load(counts), world.horizon, world.model.reward_range[1])
    trained = [cs.train(world, given, learner="posterior", steps=500, seed=1) for given in (belief, None)]
    expected = [run.step_regret[-1] for run in trained]
    assert [float(row["regret"]) for row in (rows[1], rows[3])] == expected
    found = json.loads(done(*options, "-o", runs, "--json"))
    assert found["no_logs"]["seeds"][1]["regret"] == expected[1]
    assert found["zero"]["settings"]["learner"] == "q-ucb-shaping"
    # A source that is declared randomised is another belief, and another run.
    declared = (*options, "--confounding", "random=1", "--no-compare")
    done(*declared, "-o", tmp_path / "declared")


def test_an_environment_learns_by_sampling_once_the_largest_reward_is_given(done, refused, tmp_path):
    options = ("train", "FrozenLake-v1", "--learner", "posterior", "--steps", 60, "--seeds", 1, "-o", tmp_path / "runs")
    assert "pass reward_max=" in refused(*options)
    done(*options, "--reward-max", 1)


def test_a_gymnasium_environment_takes_a_horizon(done, tmp_path):
    done("train", "FrozenLake-v1", "--steps", 60, "--seeds", 1, "--horizon", 7, "-o", tmp_path / "runs")
    assert json.loads((tmp_path / "runs" / "settings.json").read_text())["horizon"] == 7
    steps = pq.read_table(tmp_path / "runs" / "seed-0.parquet")["steps"].to_pylist()
    assert max(b - a for a, b in zip([0, *steps], steps, strict=False)) <= 7


@pytest.mark.parametrize(
    ("missing", "arguments", "message"),
    [
        ("matplotlib", ["inspect", "no.parquet", "--png", "x.png"], "Figures need an extra"),
        ("jinja2", ["inspect", "no.parquet", "--html", "x.html"], "Pages need an extra"),
        ("matplotlib", ["worlds", "lavacross-easy", "--png", "x.png"], "Figures need an extra"),
    ],
)
def test_a_missing_extra_is_named_before_anything_is_read(refused, tmp_path, monkeypatch, missing, arguments, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)
    err = refused(*arguments)
    assert message in err
    assert "causal-shaping[plot]" in err


def test_pages_of_logs_and_of_ceilings_hide_small_cells(done, easy, tmp_path):
    logs = (easy / "bad.parquet", easy / "random.parquet")
    page = tmp_path / "page.html"
    out = done("inspect", *logs, "--html", page, "--smallest-cell", 11)
    assert f"Page written to {page}." in out
    assert "fewer than 11" in page.read_text()
    done("ceilings", *logs, *BOUNDED, "--html", page, "--reward-min", "-1.1", "--smallest-cell", 11)
    assert "fewer than 11" in page.read_text()


def test_the_page_of_ceilings_can_be_of_states_that_are_declared_complete(done, tmp_path):
    rows = "episode,step,state,action,reward,terminated\n" + "".join(f"{i},0,a,{'xy'[i % 2]},1,1\n" for i in range(40))
    (tmp_path / "a.csv").write_text(rows)
    page, options = tmp_path / "page.html", ("--horizon", 1, "--reward-max", 1, "--complete")
    done("ceilings", tmp_path / "a.csv", *options, "--html", page)
    assert page.exists()
    assert cs.inspect(tmp_path / "a.csv", complete=True).counts.space.complete


def test_names_of_the_user_stay_as_they_are(refused, tmp_path):
    header = "episode,step,next_state,reward_max,dose(mg),\uf8ff,action,reward"
    (tmp_path / "a.csv").write_text(f"{header}\n0,0,a,1,2,3,x,1\n")
    err = refused("inspect", tmp_path / "a.csv", "--state", "stage")
    assert "'next_state', 'reward_max', 'dose(mg)', '" in err
    assert "--next-state" not in err


def test_warnings_on_opening_are_lines_of_their_own(run, tmp_path):
    rows = "episode,step,state,action,reward,outcome\n0,0,a,x,1,1\n1,0,a,y,1,\n"
    (tmp_path / "a.csv").write_text(rows)
    code, _, err = run("inspect", tmp_path / "a.csv", "--terminated", "outcome=1,9")
    assert code == 0
    assert "warning: " in err
    assert ".py:" not in err
