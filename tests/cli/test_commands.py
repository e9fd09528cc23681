"""The command line, run as a user would."""

import json
import re
from importlib import import_module
from inspect import unwrap

import forked
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import typer

import causal_shaping as cs
from causal_shaping.cli import JOBS, app
from causal_shaping.demo.rover import OPERATORS, rover_world, write_logs


def test_the_list_of_worlds(done):
    out = done("worlds")
    for name in cs.list_worlds():
        assert name in out
    assert "-0.5213" in out
    assert [row["world"] for row in json.loads(done("worlds", "--json"))] == list(cs.list_worlds())


def test_one_world_shows_map_winds_demonstrators_and_optimum(done):
    out = done("worlds", "lavacross-hard")
    assert "# . c c c c c . #" in out
    for expected in ("0.7", "good", "random", "-0.856", "-0.322", "LavaCrossHard-v0"):
        assert expected in out


@pytest.mark.parametrize("name", cs.list_worlds())
def test_every_world_can_be_shown(done, name):
    out = done("worlds", name)
    assert "earns" in out
    states = json.loads(done("worlds", name, "--json"))["states"]
    assert [tuple(state["state"]) for state in states] == list(cs.load_world(name).states)


def test_a_world_of_ones_own_without_an_end_is_shown_by_its_horizon(done, tmp_path):
    path = tmp_path / "farm.txt"
    path.write_text("#####\n#cc.#\n#####")
    out = done("worlds", path, "--horizon", 5)
    assert "with 5 steps to go" in out
    assert "0.500" in out


def test_a_wide_map_keeps_its_numbers(done, tmp_path):
    path = tmp_path / "a[b].txt"  # brackets are no markup
    path.write_text("#" * 18 + "\n#" + "." * 15 + "G#\n" + "#" * 18)
    out = done("worlds", path)
    assert "-1.500" in out
    assert "…" not in out
    assert "a[b].txt" in out.replace("\n", "")


def test_the_version(done):
    assert done("--version") == f"causal-shaping {cs.__version__}\n"


def test_a_picture_of_a_world(done, tmp_path):
    out = done("worlds", "lavacross-easy", "--png", tmp_path / "easy.png")
    assert (tmp_path / "easy.png").read_bytes().startswith(b"\x89PNG")
    assert "easy.png" in out


def test_collect_writes_what_the_library_collects(done, tmp_path):
    path = tmp_path / "good.parquet"
    out = done("collect", "lavacross-easy", "--demonstrator", "good", "--steps", 1000, "--seed", 4, "-o", path)
    assert "1,000 steps" in out
    cs.load_world("lavacross-easy").collect("good", 1000, seed=4).save(tmp_path / "library.parquet")
    assert pq.read_table(path).equals(pq.read_table(tmp_path / "library.parquet"))


def test_inspect_says_what_logs_cover_and_where_they_contradict_each_other(done, easy, tmp_path):
    out = done("inspect", easy / "bad.parquet", f"trial={easy}/random.parquet", "--png", tmp_path / "x.png")
    words = " ".join(out.split())
    assert "bad and trial disagree on what right does in (3, 1): it leads to (4, 1) in 9" in words
    assert "20,000" in out
    assert "Rarer ones may be missing" in words
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_inspect_says_what_comes_next_and_asks_whether_rewards_are_costs(done, easy, tmp_path):
    out = done("inspect", easy / "bad.parquet")
    assert "ceilings LOGS... --horizon 20 --reward-max -0.1 --confidence 0.95" in out
    assert "costs" not in out
    rows = "episode,step,state,action,cost\n" + "".join(f"{i},0,a,go,{i % 3}\n" for i in range(30))
    (tmp_path / "a.csv").write_text(rows)
    for reward, largest, asks in (("cost", 2, True), ("-cost", 0, False)):
        out = done("inspect", tmp_path / "a.csv", f"--reward={reward}")
        assert f"--horizon 1 --reward-max {largest} " in out
        assert ("if they are costs" in out) == asks
    out = done("inspect", tmp_path / "a.csv", "--reward", "cost", "--smallest-cell", "11")
    assert "--horizon H --reward-max R" in out


@pytest.mark.parametrize("largest", ["143.5663757", "0.1", "-0.30000000000000004", "12345678"])
def test_the_largest_reward_that_inspect_suggests_is_one_that_ceilings_takes(done, tmp_path, largest):
    lowest = float(largest) - 1
    rows = "".join(f"{i},0,a,go,{(largest, lowest)[i % 2]},1\n" for i in range(30))
    (tmp_path / "a.csv").write_text("episode,step,state,action,reward,terminated\n" + rows)
    out = done("inspect", tmp_path / "a.csv")
    (suggested,) = re.findall(r"ceilings LOGS... --horizon 1 --reward-max (\S+)", out)
    assert float(suggested) == float(largest)
    out = done("ceilings", tmp_path / "a.csv", "--horizon", 1, "--reward-max", suggested, "--support", "any")
    assert f"--reward-max {suggested} " in out  # also in the commands that come next


def test_inspect_reads_csv_parts_with_names_of_their_own(done, easy, tmp_path):
    lines = (easy / "bad.csv").read_text().splitlines()
    header = lines[0].replace('"reward"', '"score"').replace('"source",', "")
    rows = [line.split(",", 1)[1] for line in lines[1:]]
    for i, part in enumerate((rows[:7000], rows[7000:])):
        (tmp_path / f"day{i}.csv").write_text("\n".join([header, *part]) + "\n")
    ward = f"ward={tmp_path}/day0.csv,{tmp_path}/day1.csv"
    out = done("inspect", ward, "--state", "x,y", "--reward", "score", "--json")
    (source,) = json.loads(out)["sources"]
    assert (source["source"], source["steps"]) == ("ward", 20_000)


def test_inspect_cuts_all_sources_alike(done, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        rows = [f"{i},0,{rng.normal():.6f},{rng.integers(2)},1" for i in range(400)]
        (tmp_path / f"{name}.csv").write_text("episode,step,state,action,reward\n" + "\n".join(rows) + "\n")
    for cut, states in (("state=4", 4), ("state=-1:0:1", 4)):
        out = done("inspect", tmp_path / "a.csv", tmp_path / "b.csv", "--bins", cut, "--actions", "0,1,2", "--json")
        found = json.loads(out)
        assert (found["states"], found["actions"]) == (states, [0, 1, 2])
        assert [item["unknown"] for item in found["sources"]] == [400, 400]
        assert "No row tells what followed it" in " ".join(found["findings"])
    done("inspect", tmp_path / "a.csv", "--bins", "state=2", "--png", tmp_path / "x.png")


def test_inspect_refuses_two_logs_of_one_name_before_it_reads_them(refused, easy):
    assert "both called 'bad'. Name them, as in NAME=" in refused("inspect", easy / "bad.parquet", easy / "bad.parquet")


def test_inspect_can_skip_bad_episodes_and_says_so(refused, run, easy, tmp_path):
    text = (easy / "bad.csv").read_text().replace(",-1.1,", ",nan,", 1)
    (tmp_path / "bad.csv").write_text(text)
    assert "column 'reward'" in refused("inspect", tmp_path / "bad.csv", "--state", "x,y")
    code, out, err = run("inspect", tmp_path / "bad.csv", "--state", "x,y", "--skip-bad-episodes", "--json")
    assert code == 0
    assert "1 episodes with" in err
    assert "selects on outcomes" in err
    assert json.loads(out)["sources"][0]["steps"] < 20_000


BOUNDED = ("--horizon", "20", "--reward-max", "-0.1")


def test_ceilings_are_those_of_the_library_saved_drawn_and_told(quiet, easy, tmp_path):
    phi, png = tmp_path / "phi.parquet", tmp_path / "phi.png"
    options = ("--confidence", "0.95", "--confounding", "random=1", "-o", phi, "--png", png)
    out = quiet("ceilings", easy / "bad.parquet", easy / "random.parquet", *BOUNDED, *options)
    counts = cs.count([easy / "bad.parquet", easy / "random.parquet"])
    expected = cs.value_ceilings(counts, 20, -0.1, confidence=0.95, confounding={"random": 1.0})
    assert str(expected) in out
    assert cs.Ceilings.load(phi).checksum == expected.checksum
    assert png.read_bytes().startswith(b"\x89PNG")


def test_ceilings_by_step_of_files_from_elsewhere_and_as_json(run, easy, tmp_path):
    png = tmp_path / "phi.svg"
    options = ("--state", "x,y", "--step-indexed", "--support", "any", "--discount", "0.9", "--json", "--png", png)
    code, out, _ = run("ceilings", easy / "bad.csv", easy / "random.csv", *BOUNDED, *options)
    found = json.loads(out)
    assert code == 0
    assert (found["step_indexed"], found["support"], found["discount"]) == (True, "any", 0.9)
    assert found["confounding"] == {"bad": "inf", "random": "inf"}
    assert found["guaranteed"] is False
    first = found["states"][0]
    assert first["value"] == max(first["q_values"])
    assert "<svg" in png.read_text()  # no map, but states on a grid


def test_a_warning_is_said_and_the_paper_s_fixed_point_is_there(run, easy):
    options = ("--horizon", "20", "--reward-max", "0", "--method", "paper", "--stationary")
    code, out, err = run("ceilings", easy / "bad.parquet", *options)
    assert code == 0
    assert err.startswith("warning: The paper's bound is not guaranteed here.")
    assert "sweeps with contraction" in out
    code, _, err = run("ceilings", easy / "bad.parquet", *BOUNDED)
    assert code == 0
    assert "warning: Only 'bad' is there" in err


def test_sensitivity_in_a_table_a_figure_and_json(done, refused, easy, tmp_path):
    logs = (easy / "bad.parquet", easy / "random.parquet")
    options = (*BOUNDED, "--reward-min", "-1.1", "--confounding", "1,5,inf", "--confidence", "0.95")
    files = ("-o", tmp_path / "gamma.csv", "--png", tmp_path / "gamma.png")
    out = done("sensitivity", *logs, *options, *files)
    assert "At a confounding of 1 the sources contradict each other." in out
    assert "Set confidence to 0.95" in refused("sensitivity", *logs, *BOUNDED, "--reward-min", "-1.1")
    assert "single out a best action" in " ".join(out.split())
    assert (tmp_path / "gamma.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "gamma.csv").read_text().count("\n") == 1 + 3 * 49
    found = json.loads(done("sensitivity", *logs, *options, "--fixed", "random=1", "--json"))
    assert [row["confounding"] for row in found["confounding"]] == [1.0, 5.0, "inf"]
    assert found["confounding"][2]["ceiling"] >= found["confounding"][1]["ceiling"]


def test_sensitivity_takes_a_known_bound_on_values(done, easy):
    options = (*BOUNDED, "--reward-min", "-1.1", "--confounding", "inf", "--support", "any", "--plug-in", "--json")
    ceilings = [
        json.loads(done("sensitivity", easy / "random.parquet", *options, *more))["confounding"][0]["ceiling"]
        for more in ((), ("--value-max", "-0.3"))
    ]
    assert ceilings[1] < ceilings[0]


def test_hidden_columns_stand_above_the_sensitivity_and_on_the_page(done, refused, tmp_path):
    rng = np.random.default_rng(0)
    severe = rng.random(3000) < 0.5
    rows = {"episode": range(3000), "step": 0, "state": 0, "terminated": True, "severe": severe}
    rows["action"] = rng.random(3000) < np.where(severe, 0.8, 0.2)
    rows["reward"] = -1.0 * (rng.random(3000) < np.where(severe, 0.5, 0.1))
    pd.DataFrame(rows).to_csv(tmp_path / "ward.csv", index=False)
    options = ("--horizon", "1", "--reward-max", "0", "--reward-min", "-1", "--confidence", "0.95")
    out = done("sensitivity", tmp_path / "ward.csv", *options, "--hidden", "severe")
    assert out.index("leaving out severe amounts to a confounding of") < out.index("Means over 1 states")
    assert "Compare these values of confounding" in out
    found = json.loads(done("sensitivity", tmp_path / "ward.csv", *options, "--hidden", "severe", "--json"))
    assert found["hidden"][0]["confounding"] > 1.5
    page = tmp_path / "page.html"
    done("ceilings", tmp_path / "ward.csv", *options, "--hidden", "severe", "--html", page)
    assert "leaving out severe amounts to a confounding of" in page.read_text()
    assert "has no column 'age'" in refused("sensitivity", tmp_path / "ward.csv", *options, "--hidden", "age")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "nothing.parquet"), "nothing.parquet does not exist"),
        (("inspect", "=x.parquet"), "must have a name in front of"),
        (("inspect", "a.parquet", "--png", "x.gif"), "must end in"),
        (("inspect", "a.parquet", "--level", "2"), "--level is 2.0"),
        (("inspect", "a.parquet", "--html", "page.txt"), "must end in .html"),
        (("inspect", "a.parquet", "--html", "no/page.html"), "no does not exist. Make it first."),
        (("inspect", "a.parquet", "-o", "x.txt"), "must end in .csv or .parquet"),
        (("inspect", "a.parquet", "--terminated", "died,"), "--terminated is 'died,'; write a column"),
        (("inspect", "a.parquet", "--truncated", "=left"), "--truncated is '=left'; write a column"),
        (("inspect",), "Missing argument 'LOGS'. See causal-shaping inspect --help."),
        (("inspect", "a.parquet", "--by-step"), "No such option: --by-step"),
        (("ceilings", "a.parquet", *BOUNDED, "--smallest-cell", "11"), "--smallest-cell is for a page"),
        (("ceilings", "a.parquet", "--horizon", "few", "--reward-max", "0"), "'--horizon'"),
        (("ceilings", "a.parquet", *BOUNDED, "--png", "no/x.png"), "no does not exist. Make it first."),
        (("sensitivity", "a.parquet", *BOUNDED, "--reward-min", "-1", "--png", "x.gif"), "must end in"),
        (("train", "lavacross-easy", "-o", "runs", "--png", "x.gif"), "must end in"),
        (("train", "FrozenLake-v1", "-o", "runs", "--png", "x.png"), "the optimum of FrozenLake-v1 is not known"),
        (("train", "FrozenLake-v1", "-o", "runs", "--wind", "0,0,0,0,1"), "--wind is for worlds"),
        (("train", "NoSuch-v1", "-o", "runs"), "name that, too, as in package:NoSuch-v1"),
        (("train", "mine/NoSuch-v1", "-o", "runs"), "name that, too, as in mine:mine/NoSuch-v1"),
        (("inspect", "a.parquet", "--bins", "age"), "--bins is 'age'"),
        (("ceilings", "a.parquet", *BOUNDED, "-o", "phi.txt"), "must end in .csv or .parquet"),
        (("ceilings", "a.parquet", *BOUNDED, "--png", "x.gif"), "must end in"),
        (("ceilings", "a.parquet", *BOUNDED, "--confounding", "few"), "--confounding: 'few' is not a number"),
        (("ceilings", "a.parquet", *BOUNDED, "--confounding", "random=few"), "--confounding: 'few' is not a number"),
        (("ceilings", "a.parquet", *BOUNDED), "a.parquet does not exist"),
        (("sensitivity", "a.parquet", *BOUNDED, "--reward-min", "-1", "--confounding", "1,,2"), "'' is not a number"),
        (("sensitivity", "a.parquet", *BOUNDED, "--reward-min", "-1", "--fixed", "1"), "--fixed is '1'"),
        (("sensitivity", "a.parquet", *BOUNDED, "--reward-min", "-1", "-o", "x.txt"), "must end in .csv or .parquet"),
        (("train", "lavacross-easy", "-o", "runs", "--seeds", "0"), "Invalid value for '--seeds'"),
        (("train", "lavacross-easy", "-o", "runs", "--counts", "a", "--potential", "b"), "give one of them"),
        (("train", "lavacross-easy", "-o", "runs", "--support", "any"), "--support and --discount are for --counts"),
        (("train", "lavacross-easy", "-o", "runs", "--potential", "no.parquet"), "no.parquet does not exist"),
        (("train", "NoSuch-v1", "-o", "runs"), "Gymnasium cannot make 'NoSuch-v1'"),
        (("train", "lavacross-easy", "-o", "runs", "--learner", "magic"), "There is no learner 'magic'"),
        (("worlds", "lavacross-hrad"), "Did you mean 'lavacross-hard'"),
        (("worlds", "--png", "x.png"), "need a world"),
        (("worlds", "lavacross-hard", "--png", "x.gif"), "must end in"),
        (("worlds", "lavacross-hard", "--wind", "a,b"), "give 5 probabilities"),
        (("worlds", "lavacross-hard", "--wind", "1,1"), "give 5 probabilities"),
        (("collect", "lavacross-easy", "--demonstrator", "gd", "-o", "x.parquet"), "no demonstrator 'gd'"),
        (("collect", "lavacross-easy", "--demonstrator", "good", "-o", "x.txt"), "must end in .parquet"),
        (("collect", "lavacross-easy", "--demonstrator", "good", "--steps", "0", "-o", "x.parquet"), "steps is 0"),
    ],
)
def test_what_is_refused_says_why_on_one_line_and_exits_with_2(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_ceilings_write_the_counts_they_were_computed_from(done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("good", "random"):
        done("collect", "lavacross-easy", "--demonstrator", name, "--steps", 20_000, "-o", f"{name}.parquet")
    options = ("--value-max", 0, "-o", "phi.parquet", "--counts", "counts.parquet")
    out = done("ceilings", "good.parquet", "random.parquet", *BOUNDED, *options)
    assert "No state has a value above 0, at any step." in out
    assert "Counts written to counts.parquet." in out
    assert cs.Counts.load("counts.parquet").checksum == cs.Ceilings.load("phi.parquet").counts_checksum


def test_the_command_alone_shows_the_three_jobs(done):
    out = done()
    for job in ("causal-shaping inspect", "causal-shaping ceilings", "ShapeReward", "causal-shaping train"):
        assert job in out
    assert max(map(len, out.splitlines())) <= 120


def test_the_three_jobs_run_with_fewer_steps_each_in_a_process_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = re.sub(r"\n {10,}", " ", JOBS)  # long lines go on in the next
    lines = [line.split()[1:] for line in told.splitlines() if line.startswith("       causal-shaping ")]
    assert [line[0] for line in lines] == ["demo", "inspect", "ceilings", "train"]
    (tmp_path / "demo").mkdir()
    write_logs(rover_world(), {name: tmp_path / "demo" / f"{name}.csv" for name in OPERATORS}, seed=1)
    for line in lines[1:]:
        brief = ["--steps", "1000"] if line[0] == "train" else []
        ran = forked.run(forked.COMMAND, *line, *brief)
        assert (ran.returncode, ran.stderr) == (0, "")


def test_worth_tells_what_logs_save_and_resumes(done, quiet, refused, easy, tmp_path):
    logs, small = [easy / "bad.parquet", easy / "random.parquet"], ("--steps", 200, "--seeds", 2)
    files = ("-o", tmp_path / "worth.csv", "--png", tmp_path / "worth.png", "--folder", tmp_path / "runs")
    out = quiet("worth", *logs, *BOUNDED, *small, "--trial", 5, *files)
    for expected in ("are expected to", "episodes (90% of worlds", "A randomised source of 5 rows", "Table written to"):
        assert expected in out
    assert len(pd.read_csv(tmp_path / "worth.csv")) == 2
    assert (tmp_path / "worth.png").exists()
    assert len(list((tmp_path / "runs").glob("world-*.json"))) == 2
    out = done("worth", *logs, *BOUNDED, *small, "--json")
    assert json.loads(out)["settings"]["steps"] == 200
    done("worth", *logs, *BOUNDED, *small, "-o", tmp_path / "worth.parquet")
    assert json.loads(cs.Worth.load(tmp_path / "worth.parquet").to_json()) == json.loads(out)
    assert "Invalid value for '--trial'" in refused("worth", *logs, *BOUNDED, *small, "--trial", "-1")
    assert "another" in refused("worth", *logs, *BOUNDED, "--steps", 300, "--folder", tmp_path / "runs")


COMMANDS = ("worlds", "collect", "inspect", "ceilings", "fit", "sensitivity", "worth", "train")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_in_its_help(done, command):
    out = done(command, "--help")
    assert f"Example: causal-shaping {command}" in out
    assert "bool" not in out.lower()


@pytest.mark.parametrize("command", [*COMMANDS, "demo"])
def test_every_option_has_help_and_no_help_is_of_an_option_that_does_not_exist(command):
    """The help stands in docstrings, where a misspelled name would only be left out."""
    options = {item.name: item.help for item in typer.main.get_command(app).commands[command].params}
    assert all(options.values()), options
    function = unwrap(getattr(import_module(f"causal_shaping.cli.{command}"), command))
    documented = re.findall(r"^        (\w+): ", function.__doc__.partition("Options:")[2], re.MULTILINE)
    assert set(documented) <= set(options)


def test_every_command_is_known(done):
    out = done("--help")
    assert all(command in out for command in COMMANDS)


def test_ceilings_say_when_the_logs_are_longer_and_when_their_ends_are_unknown(run, tmp_path):
    rows = [
        f"{episode},{step},{step % 3},{(episode + step) % 2},1,{str(step == 3 and episode < 20).lower()}"
        for episode in range(100)
        for step in range(4)
    ]
    header = "episode,step,state,action,reward,terminated"
    (tmp_path / "a.csv").write_text("\n".join([header, *rows]) + "\n")
    asked = ("ceilings", tmp_path / "a.csv", "--reward-max", 1, "--support", "any", "--horizon")
    code, _, err = run(*asked, 3)
    assert code == 0
    assert "warning: --horizon is 3, but a holds episodes of up to 4 steps." in err
    assert "pass --horizon 4" in err
    assert "80 of 100 episodes of a stop with neither flag set" in err
    assert "Many steps do not tell what followed them: 20.0% of a" in err
    _, _, err = run(*asked, 4)
    assert "--horizon" not in err


def test_the_least_reward_goes_with_the_ceilings(done, refused, easy, tmp_path):
    logs = (easy / "bad.parquet", easy / "random.parquet")
    done("ceilings", *logs, *BOUNDED, "--reward-min", "-1.1", "-o", tmp_path / "phi.parquet")
    phi = cs.load_potential(tmp_path / "phi.parquet")
    assert (phi.kind, phi.reward_min) == ("ceiling", -1.1)
    assert "reward_min is -0.01, but source" in refused("ceilings", *logs, *BOUNDED, "--reward-min", "-0.01")


def test_inspect_looks_at_clusters_of_states_that_cannot_be_listed(done, refused, tmp_path):
    path, table = tmp_path / "good.parquet", tmp_path / "clusters.csv"
    pq.write_table(cs.load_world("windy-field").collect("good", 200), path)
    out = done("inspect", path, "--state", "x,y", "--continuous", "-o", table)
    assert "clusters of states" in out
    assert pd.read_csv(table)["rows"].sum() == 200
    assert "--html cannot be combined with --continuous" in refused(
        "inspect", path, "--state", "x,y", "--continuous", "--html", tmp_path / "page.html"
    )
