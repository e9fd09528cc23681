"""The demo: one command that shows logs which mislead, what they prove, and what that saves an agent."""

import csv
import html
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from browser import FOUND, MISSING, Browser

import causal_shaping as cs
from causal_shaping.cli import main
from causal_shaping.demo import agents, rover, words
from causal_shaping.demo.agents import BELIEVES, NO_LOGS, OURS, Trained
from causal_shaping.demo.folder import demo_folder
from causal_shaping.errors import FileError

COMMAND = [sys.executable, "-m", "causal_shaping", "demo"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The demo, run once as a user would, through a pipe: folder, output, errors."""
    folder = tmp_path_factory.mktemp("empty")
    ran = subprocess.run(COMMAND, cwd=folder, capture_output=True, text=True, check=True)
    return folder, ran.stdout, ran.stderr


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process; return exit code, output and errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["causal-shaping", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


@pytest.fixture
def short(monkeypatch):
    """Make the agents few and their runs short."""
    monkeypatch.setattr(agents, "SEEDS", 2)
    monkeypatch.setattr(agents, "STEPS", 500)


def test_it_prints_plain_lines_no_warning_and_no_more_than_forty(shown):
    _, out, errors = shown
    assert errors == ""
    assert len(out.splitlines()) <= 40
    assert len(out.split("1. ")[1].split("2. ")[0].splitlines()) <= 10  # a title, eight lines, an empty one
    assert max(map(len, out.splitlines())) <= 120
    assert "\x1b" not in out


def test_it_writes_what_it_names_and_nothing_else(shown):
    folder, out, _ = shown
    written = {"ana.csv", "ben.csv", "carla.csv", "counts.parquet", "demo.json", "index.html"}
    assert {path.name for path in (folder / "demo").glob("[!.]*")} == written
    assert [path.name for path in folder.iterdir()] == ["demo"]
    for name in (*(f"{operator}.csv" for operator in rover.OPERATORS), "index.html"):
        assert os.path.join("demo", name) in out


def test_the_files_hold_words_and_numbers_but_no_wind(shown):
    folder, _, _ = shown
    for name in rover.OPERATORS:
        rows = list(csv.DictReader((folder / "demo" / f"{name}.csv").read_text().splitlines()))
        assert len(rows) == rover.ROWS
        assert " ".join(rows[0]) == "trip second x y move score next_x next_y outcome time_up"
        assert {row["move"] for row in rows} == {"up", "down", "left", "right", "still"}
        assert {row["outcome"] for row in rows} == {"driving", "lava", "goal"}


def written(folder, seed):
    """Write the logs of a seed, and return the world and the paths."""
    world, paths = rover.rover_world(), {name: folder / f"{name}.csv" for name in rover.OPERATORS}
    rover.write_logs(world, paths, seed)
    return world, paths


def test_the_counts_of_the_files_are_those_of_the_trips(tmp_path):
    world, paths = written(tmp_path, 3)
    counts = cs.count(rover.open_files(paths))
    trips = [world.collect(who.demonstrator, rover.ROWS, 3, name) for name, who in rover.OPERATORS.items()]
    assert counts.to_space(world.space).checksum == cs.count(trips).to_space(world.space).checksum


def test_every_operator_feels_the_wind_and_slips_in_one_step_of_twenty():
    world = rover.rover_world()
    acting = ~world.model.terminal
    for operator in rover.OPERATORS.values():
        beta = world.demonstrators[operator.demonstrator][acting]
        assert np.abs(beta - beta[:, -1:]).max() > 0.9  # another action in the wind than in calm air, somewhere
        assert beta.max(axis=2) == pytest.approx(0.96)  # 0.95 by the rule, and a fifth of the slips


def test_right_beside_the_lava_succeeds_as_often_as_enumeration_says():
    world = rover.rover_world()
    state, right = world.state_at(3, 1), world.actions.index("right")
    wind = world.model.noise[state]
    safe = world.model.next_state[state, right] == world.state_at(4, 1)
    assert rover.share_for_agent(world) == pytest.approx(0.2)
    for operator in ("ben", "carla"):
        beta = world.demonstrators[rover.OPERATORS[operator].demonstrator][state, :, right]
        expected = (wind * beta * safe).sum() / (wind * beta).sum()
        logs = world.collect(rover.OPERATORS[operator].demonstrator, 200_000, 5, operator)
        assert rover.shares_in_logs(cs.count(logs))[0][operator] == pytest.approx(expected, abs=0.02)
        assert expected == pytest.approx(0.96)


def test_believing_without_logs_is_the_agent_without_logs():
    world = rover.rover_world()
    counts = cs.count(world.collect("good", 100, 0))
    nothing = cs.Counts.combined(
        counts.space, counts.sources, {name: np.zeros(0) for name in counts.COLUMNS if name != "step"} | {"step": None}
    )
    regret, rewards = agents._believing(world, nothing, 4)
    expected, paid = agents._trained(world, None, 4)
    assert (regret == expected).all()
    assert (rewards == paid).all()


def test_believing_a_randomised_trial_leaves_hardly_any_regret():
    world = rover.rover_world()
    trial = cs.count(world.collect("random", 200_000, 0))
    regret, _ = agents._believing(world, trial, 4)
    assert regret[-1] < 1.0


def test_falls_are_the_steps_that_cost_more_than_one():
    world = rover.rover_world()
    run = cs.train(world, learner="posterior", samples=True, record=True, steps=2_000, seed=0)
    reached = np.array([world.grid[state] for state in world.states])[run.logs.next_state]
    assert ((run.logs.reward < agents.LAVA) == (reached == "L")).all()
    assert (reached == "L").any()


def test_the_commands_of_the_page_run_and_give_the_numbers_of_the_demo(shown, run, monkeypatch):
    folder, out, _ = shown
    monkeypatch.chdir(folder)
    page = re.sub(r"</?span>", "", (folder / "demo" / "index.html").read_text())
    commands = [shlex.split(html.unescape(text)) for text in re.findall(r"<pre><code>(.*?)</code></pre>", page)]
    assert [command[1] for command in commands] == ["demo", "inspect", "ceilings", "train"]
    code, found, errors = run(*commands[1][1:])
    assert (code, errors) == (0, "")
    times = re.search(r"contradict each other on (\d+) moves", out)[1]
    assert f"{times} contradictions between sources" in found
    before = (folder / "demo" / "counts.parquet").read_bytes()
    code, found, errors = run(*commands[2][1:])
    assert (code, errors) == (0, "")
    assert "These logs help" in found
    assert "expected to help as a potential" in out
    assert (folder / "demo" / "counts.parquet").read_bytes() == before
    code, found, errors = run(*commands[3][1:], "--json")
    assert (code, errors) == (0, "")
    plain = json.loads(found)
    for name, seeds in ((OURS, plain["seeds"]), (NO_LOGS, plain["no_logs"]["seeds"])):
        mean = np.mean([seed["regret"] for seed in seeds])
        assert f"{name} {mean:.1f} " in " ".join(out.split())


@pytest.mark.skipif(FOUND is None, reason=MISSING)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_the_page_whole(shown, tmp_path, width, scheme):
    page = shown[0] / "demo" / "index.html"
    with Browser(tmp_path / "browser") as browser:
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.open(page.as_uri())
        assert browser.run("document.images.length") == 5
        assert browser.run("[...document.images].every(one => one.complete && one.naturalWidth > 100)")
        wide = "[...document.querySelectorAll('body, body *')].filter(one => one.scrollWidth > one.clientWidth + 1"
        assert browser.run(f"{wide} && one.clientWidth).map(one => one.tagName)") == []
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        dark = browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
        assert dark == (scheme == "dark")
        assert browser.fetched == [page.as_uri(), *(one for one in browser.fetched if one.startswith("data:"))]
        assert browser.said == []


def test_it_starts_afresh_in_its_own_folder_and_keeps_what_others_put_there(run, short, tmp_path):
    code, first, _ = run("demo", "-o", tmp_path / "here")
    assert code == 0
    (tmp_path / "here" / "notes.txt").write_text("mine")
    (tmp_path / "here" / "ana.csv").write_text("cut off")
    code, again, _ = run("demo", "-o", tmp_path / "here")
    assert (code, again) == (0, first)
    assert (tmp_path / "here" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "here" / "ana.csv").stat().st_size > 500_000


def test_a_folder_of_other_people_is_left_alone(run, tmp_path):
    (tmp_path / "ana.csv").write_text("theirs")
    code, out, errors = run("demo", "-o", tmp_path)
    assert (code, out) == (2, "")
    assert errors.startswith(f"error: {tmp_path} holds files that the demo did not write. Choose another folder")
    assert [path.name for path in tmp_path.iterdir()] == ["ana.csv"]


def test_a_file_that_somebody_put_where_the_demo_would_write_is_kept(tmp_path):
    with demo_folder(tmp_path / "demo") as folder:
        folder.file("ana.csv").write_text("ours")
    (tmp_path / "demo" / "index.html").write_text("theirs")
    with demo_folder(tmp_path / "demo") as folder:
        assert not (tmp_path / "demo" / "ana.csv").exists()  # it starts afresh
        folder.file("ana.csv").write_text("ours again")
        with pytest.raises(FileError, match=r"index\.html was not written by the demo"):
            folder.file("index.html")
    assert (tmp_path / "demo" / "index.html").read_text() == "theirs"


@pytest.mark.parametrize("text", ['{"files": ["demo.json", "mine.txt"]}', '{"files": null}', "3", "no JSON"])
def test_a_list_that_the_demo_did_not_write_gives_nothing_away(run, tmp_path, text):
    (tmp_path / "demo.json").write_text(text)
    (tmp_path / "mine.txt").write_text("mine")
    code, out, errors = run("demo", "-o", tmp_path)
    assert (code, out) == (2, "")
    assert errors.startswith(f"error: {tmp_path / 'demo.json'}")
    assert "Choose another folder" in errors
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_two_demos_do_not_share_a_folder(tmp_path):
    second = demo_folder(tmp_path / "demo")
    with demo_folder(tmp_path / "demo"), pytest.raises(FileError, match="Another process"):
        second.__enter__()


@pytest.mark.parametrize(("option", "says"), [(("--seed", -1), "--seed"), (("--seed", 2**63 - 1), "--seed")])
def test_what_cannot_be_done_is_said_before_anything_is_written(run, tmp_path, option, says):
    code, out, errors = run("demo", "-o", tmp_path / "demo", *option)
    assert (code, out) == (2, "")
    assert says in errors
    assert not (tmp_path / "demo").exists()


def test_another_seed_gives_other_files(run, short, tmp_path):
    facts = []
    for seed in (1, 2):
        code, out, _ = run("demo", "-o", tmp_path / str(seed), "--seed", seed, "--json")
        assert code == 0
        facts.append(json.loads(out))
    assert facts[0]["right_beside_lava"]["shares"] != facts[1]["right_beside_lava"]["shares"]
    assert set(facts[0]["agents"]) == {NO_LOGS, BELIEVES, OURS}


@pytest.mark.parametrize("module", ["matplotlib", "jinja2"])
def test_without_the_extra_all_but_the_page_is_done(run, short, tmp_path, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    code, out, errors = run("demo", "-o", tmp_path / "demo")
    assert (code, errors) == (0, "")
    assert "pip install matplotlib jinja2" in out
    assert not (tmp_path / "demo" / "index.html").exists()


def test_a_name_of_a_folder_is_shown_as_text(run, short, tmp_path):
    folder = tmp_path / "a <i>\n\x1b[31m'c"
    code, out, _ = run("demo", "-o", folder)
    assert code == 0
    assert "\x1b" not in out
    assert "\\x1b[31m" in out
    assert "<i>" not in (folder / "index.html").read_text()


@pytest.mark.parametrize("place", ["rover.open_files", "agents.train_agents"])
def test_interrupted_it_says_how_to_go_on(run, tmp_path, monkeypatch, place):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"causal_shaping.demo.{place}", interrupt)
    code, _, errors = run("demo", "-o", tmp_path / "demo")
    assert (code, errors) == (130, f"Interrupted. Run the same command again: it starts afresh in {tmp_path}/demo.\n")
    with demo_folder(tmp_path / "demo"):  # it is still the demo's
        pass


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("after", [0.0, 0.1, 0.3])
def test_ctrl_c_ends_it_without_an_error(tmp_path, after):
    process = subprocess.Popen(COMMAND, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 300
    while not (tmp_path / "demo" / "carla.csv").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors == "Interrupted. Run the same command again: it starts afresh in demo.\n"


def one(regret, spread=1.0):
    """Return an agent of four seeds, whose regret is about so much."""
    return Trained(np.array([[0.0, regret + spread * k] for k in (-1, 0, 0, 1)]), np.full(4, 7.0))


@pytest.mark.parametrize(
    ("regrets", "says"),
    [
        ((50, 20, 5), "'causal-shaping' has 90% less regret than 'no logs', and 75% less than 'believes the logs'."),
        (
            (60, 5, 20),
            "Believing the logs had the least regret here (7 falls into the lava, 7 with causal-shaping), "
            "as causal-shaping also doubts the logs where they are right.",
        ),
        ((5, 60, 20), "The logs did not help here: the agent without them has the least regret."),
        ((50, 5.2, 5), "No agent is clearly the best here: the intervals of 'causal-shaping' and 'believes the logs' "),
    ],
)
def test_the_conclusion_names_the_agent_with_the_least_regret(regrets, says):
    trained = {name: one(regret) for name, regret in zip((NO_LOGS, BELIEVES, OURS), regrets, strict=True)}
    assert words.conclusion(trained, 0.9, 0.2)[0].startswith(says)
