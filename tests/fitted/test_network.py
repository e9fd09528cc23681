"""The estimator "network": one-hot states, images, layers of one's own, resumption, files, several processes."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import causal_shaping as cs
from causal_shaping.data.transitions import Transitions
from causal_shaping.errors import ArgumentError, DataError, FileError
from causal_shaping.fitted import _kernels as kernels, _network, _torch, fitting
from causal_shaping.fitted._network import load_network, save_network
from causal_shaping.fitted._steps import rule_of
from causal_shaping.fitted.results import _checksum
from causal_shaping.fitted.settings import Settings
from causal_shaping.io.inputs import read_arrays, with_checksum

torch = pytest.importorskip("torch")

HORIZON = 3
QUICK = {"estimator": "network", "hidden": 32, "layers": 1, "batch": 256, "atoms": 11, "sample": 2000}
BRIEF = QUICK | {"first_gradient_steps": 10, "gradient_steps": 5}
STATES, ACTIONS, NOISES, END = 5, 2, 2, 4


def watched(name, seed, episodes=300, longest=6):
    """Logs of a random CMDP with five states, the last of them terminal; one source sees the noise."""
    world, rng = np.random.default_rng(7), np.random.default_rng([seed, len(name)])
    follows = world.integers(STATES, size=(STATES, ACTIONS, NOISES))
    reward = world.integers(-5, 1, size=(STATES, ACTIONS, NOISES)) / 10
    rows = []
    for episode in range(episodes):
        s = int(rng.integers(STATES - 1))
        for step in range(longest):
            u = int(rng.integers(NOISES))
            x = u if name == "seeing" and rng.random() < 0.6 else int(rng.integers(ACTIONS))
            after = int(follows[s, x, u])
            rows.append((name, episode, step, s, x, reward[s, x, u], after, after == END, step == longest - 1))
            s = after
            if s == END:
                break
    names = ["source", "episode", "step", "state", "action", "reward", "next_state", "terminated", "truncated"]
    frame = pd.DataFrame(rows, columns=names)
    frame["truncated"] &= ~frame["terminated"]
    return frame


@pytest.fixture(scope="module")
def logs():
    return [watched(name, seed=0) for name in ("seeing", "random")]


def transitions(logs, appearance):
    """The rows of logs, with the appearance of each state, [states, *shape], in place of its number."""
    frame = pd.concat(logs, ignore_index=True)
    episode = frame.groupby(["source", "episode"], sort=False).ngroup().to_numpy()
    last = np.append(episode[1:] != episode[:-1], True)
    place = np.arange(len(frame)) + np.append(0, np.cumsum(last)[:-1])  # one more observation after each episode
    seen = np.empty(len(frame) + int(last.sum()), dtype=np.int64)
    seen[place + 1] = frame["next_state"]
    seen[place] = frame["state"]
    names = tuple(frame["source"].unique())
    return Transitions(
        sources=names,
        actions=tuple(range(ACTIONS)),
        columns=tuple(f"c{k}" for k in range(appearance.shape[1])) if appearance.ndim == 2 else ("image",),
        shape=appearance.shape[1:],
        observations=appearance[seen],
        state=place,
        next_state=place + 1,
        action=frame["action"].to_numpy(np.int32),
        reward=frame["reward"].to_numpy(float),
        terminated=frame["terminated"].to_numpy(bool),
        truncated=frame["truncated"].to_numpy(bool),
        source=frame["source"].map({name: k for k, name in enumerate(names)}).to_numpy(np.int16),
        episode=episode.astype(np.int64),
        step=frame["step"].to_numpy(np.int32),
    )


ONE_HOT = np.eye(STATES, dtype=np.float32)
IMAGES = np.random.default_rng(3).integers(0, 11, size=(STATES, 7, 7, 3)).astype(np.uint8)


@pytest.fixture(scope="module")
def vectors(logs):
    return transitions(logs, ONE_HOT)


@pytest.fixture(scope="module")
def images(logs):
    return transitions(logs, IMAGES)


def fit(rows, **options):
    return cs.fit_ceilings(rows, reward_max=0.0, horizon=HORIZON, **options)


@pytest.fixture(scope="module")
def exact(logs):
    return by_table(logs)


def by_table(logs):
    counts = cs.count(logs, states=range(STATES), terminal=[END], complete=True)
    return cs.value_ceilings(counts, HORIZON, 0.0).values[0, :END]


def test_a_target_is_split_between_atoms_so_that_its_mean_stays():
    targets, atoms = np.random.default_rng(0).uniform(-1, 1, 500), np.array([-1.0, -0.3, 0.1, 0.9, 1.0])
    lower, share = np.empty(500, dtype=np.int32), np.empty(500)
    kernels.project(targets, atoms, lower, share)
    assert atoms[lower] * (1 - share) + atoms[lower + 1] * share == pytest.approx(targets)


def test_ceilings_of_one_hot_states_are_near_those_of_tables(exact, vectors):
    """With all rows in each batch: with some of them the error depends on how a processor rounds."""
    whole = QUICK | {"batch": 2000, "rate": 0.01, "first_gradient_steps": 400, "gradient_steps": 150}
    fitted = fit(vectors, expectile=0.999, held_out=0.0, **whole)
    assert fitted(ONE_HOT[:END]) == pytest.approx(exact, abs=0.02)
    assert np.ptp(exact) > 0.08  # there is something to tell apart


def test_ceilings_of_images_are_near_those_of_tables(exact, images):
    fitted = fit(images, expectile=0.999, held_out=0.0, first_gradient_steps=250, gradient_steps=100, **QUICK)
    assert fitted(IMAGES[:END]) == pytest.approx(exact, abs=0.03)


SIDE, BAR = 64, 6


def screens(states, channels, seed=0):
    """Large images: a bar whose height is the state, and a dot at random, so that hardly any are equal."""
    rng, seen = np.random.default_rng(seed), np.zeros((len(states), SIDE, SIDE, channels), dtype=np.uint8)
    for image, state in zip(seen, states, strict=True):
        image[6 + 11 * state :][:BAR, 15:45] = 255
        image[tuple(rng.integers(SIDE, size=2))] = 128
    return seen


def test_large_images_are_fitted_a_few_at_a_time(monkeypatch):
    logs = [watched(name, seed=0, episodes=25) for name in ("seeing", "random")]
    numbers = transitions(logs, np.arange(STATES, dtype=np.float32)[:, None])
    seen = screens(numbers.observations[:, 0].astype(int), channels=4)
    rows = replace(numbers, observations=seen, shape=seen.shape[1:], columns=("screen",))
    few = 16 * seen[0].size
    assert max(4 * _network.NUMBERS_AT_ONCE, 8 * _network.NUMBERS_LOOKED_AT, fitting.MOST_BYTES) <= 2**29
    monkeypatch.setattr(_network, "NUMBERS_AT_ONCE", few)
    monkeypatch.setattr(_network, "NUMBERS_LOOKED_AT", few)
    monkeypatch.setattr(fitting, "MOST_BYTES", 100 * seen[0].size)  # of about 130 images
    sizes = []

    def watching(observations, scales):
        sizes.append(observations.size)
        return _torch.inputs(observations, scales)

    monkeypatch.setattr(_network, "inputs", watching)
    options = QUICK | {"first_gradient_steps": 100, "gradient_steps": 40, "batch": 16, "rate": 0.002}
    fitted = fit(rows, expectile=0.999, held_out=0.0, **options)
    assert max(sizes) == few
    exact = by_table(logs)
    assert fitted(screens(range(END), channels=4, seed=1)) == pytest.approx(exact, abs=0.08)
    assert (exact < -0.15).all()  # of at most 0 and at least -1.5
    assert fitted.low.shape == (SIDE, SIDE, 4)


@pytest.mark.parametrize(
    "options",
    [QUICK | {"first_gradient_steps": 60, "gradient_steps": 20, "rate": 0.003}, {"estimator": "forest", "members": 1}],
    ids=["network", "forest"],
)
def test_long_vectors_are_fitted(logs, exact, options):
    rng = np.random.default_rng(0)
    appearance = rng.normal(size=(STATES, 500)).astype(np.float32)
    rows = transitions(logs, appearance)
    noisy = rows.observations + rng.normal(scale=0.3, size=rows.observations.shape).astype(np.float32)
    fitted = fit(replace(rows, observations=noisy), **options)
    assert fitted(appearance[:END]) == pytest.approx(exact, abs=0.06)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_expectiles_have_the_least_loss_of_all_weights(level):
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal(size=(2000, 5)), np.ones((2000, 1))], axis=1)
    wanted = features @ rng.normal(size=6) + rng.exponential(size=2000)
    start = torch.zeros(6)
    found = _network._expectile_weights(torch.as_tensor(features), torch.as_tensor(wanted), start, level).numpy()
    excess = wanted - features @ found
    slope = (np.where(excess > 0, level, 1 - level) * excess) @ features / len(wanted)
    assert slope == pytest.approx(0, abs=1e-5)  # the loss is convex
    assert (excess > 0).mean() == pytest.approx({0.5: 0.4, 0.9: 0.15, 0.99: 0.04}[level], abs=0.05)


def test_no_expectile_exceeds_the_largest_target(vectors):
    settings = Settings(reward_bound=1.0, horizon=2, **BRIEF).checked(vectors.sources)
    network = _network.Network(vectors, np.ones(len(vectors)), settings, 0, None, _torch.Processes())
    targets, before = np.asarray(vectors.reward) + vectors.terminated, np.full(len(vectors.observations), 0.3)
    network.fit(targets, before)
    with torch.no_grad():
        network._model["best"].bias += 9.0  # an error of the fit
    rule, which = rule_of(settings, vectors.sources, 2), np.arange(50)
    best = network.shares(which, rule)[2]
    assert best[best > kernels.NOTHING] == pytest.approx(targets.max())
    found, _ = network.q_values(slice(0, 50), rule, np.ones((1, ACTIONS), dtype=bool), False)
    assert found.max() <= targets.max() + 1e-9 < rule.vacuous


def test_equal_seeds_give_equal_ceilings(vectors):
    first, again, other = (fit(vectors, seed=seed, **BRIEF)(ONE_HOT[:END]) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_images_use_a_network_unless_told_otherwise(images):
    fitted = fit(images, **{name: option for name, option in BRIEF.items() if name != "estimator"})
    assert fitted.settings.estimator == "network"
    assert fitted.settings.members == 1


def test_layers_of_one_s_own_get_normalised_images_by_channel(images):
    shapes = []

    class Flat(torch.nn.Module):
        def __init__(self, shape, outputs):
            super().__init__()
            shapes.append(shape)
            self.layer = torch.nn.Linear(int(np.prod(shape)), outputs)

        def forward(self, seen):
            assert abs(float(seen.mean())) < 1
            return torch.tanh(self.layer(seen.flatten(1)))

    fitted = fit(images, network=Flat, **BRIEF)
    assert shapes == [(3, 7, 7)]
    assert fitted.settings.network.endswith("Flat")


def test_a_network_refuses_to_learn_the_largest_value(vectors):
    with pytest.raises(ArgumentError, match="set expectile below 1"):
        fit(vectors, expectile=1.0, **BRIEF)


@pytest.mark.parametrize("stop_at", ["best guesses", "ceilings"])
def test_an_interrupted_fit_goes_on_to_the_same_ceilings(vectors, tmp_path, stop_at):
    class Stopped(Exception):
        pass

    def stop(done, total, what):
        if stop_at in what and done > (0.7 if stop_at == "best guesses" else 0.2) * total:
            raise Stopped

    whole = fit(vectors, **BRIEF)
    with pytest.raises(Stopped):
        fit(vectors, folder=tmp_path / "run", progress=stop, **BRIEF)
    assert list((tmp_path / "run").glob("member-*.npz"))
    resumed = fit(vectors, folder=tmp_path / "run", **BRIEF)
    assert np.array_equal(resumed(ONE_HOT), whole(ONE_HOT))
    assert np.array_equal(resumed.potential("mean").values(ONE_HOT, 0), whole.potential("mean").values(ONE_HOT, 0))


@pytest.fixture(scope="module")
def image_fit(images):
    return fit(images, **BRIEF)


def test_ceilings_of_images_are_the_same_after_saving_and_loading(image_fit, tmp_path):
    fitted = image_fit
    fitted.save(tmp_path / "phi")
    again = cs.FittedCeilings.load(tmp_path / "phi")
    assert (tmp_path / "phi" / "network.safetensors").exists()
    assert np.array_equal(again(IMAGES, 1), fitted(IMAGES, 1))
    assert np.array_equal(again.q_values(IMAGES), fitted.q_values(IMAGES))
    weights = tmp_path / "phi" / "network.safetensors"
    weights.write_bytes(b"nothing" * 9)
    with pytest.raises(FileError, match="safetensors"):
        cs.FittedCeilings.load(tmp_path / "phi")


def forged(fitted, folder, name, change):
    """Save a fit with an array of its network changed, or left out, and checksums that fit."""
    fitted.save(folder)
    weights = load_network(folder / "network.safetensors")
    weights |= {f"surface_{name}": change and change(weights[f"surface_{name}"])}
    weights = {name: np.ascontiguousarray(array) for name, array in weights.items() if array is not None}
    save_network(folder / "network.safetensors", weights)
    held = json.loads((folder / "fitted.json").read_text())
    held["arrays"] = _checksum(weights | read_arrays(folder / "fitted.npz"))
    del held["checksum"]
    (folder / "fitted.json").write_text(json.dumps(with_checksum(held)))
    return folder


def test_weights_beyond_measure_give_an_error_and_no_infinite_value(image_fit, tmp_path):
    folder = forged(image_fit, tmp_path / "phi", "model.1.weight", lambda array: np.full_like(array, 3e38))
    fitted = cs.FittedCeilings.load(folder)
    potential, guess = fitted.potential(), fitted.potential("mean")
    for values in (fitted, fitted.q_values, fitted.spread, potential, guess):
        with pytest.raises(DataError, match="no finite value for an observation"):
            values(IMAGES)


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("hidden", lambda array: array * 0 + 10**9, "do not fit the network"),
        ("layers", lambda array: array * 0 + 10**9, "layers is 1000000000; it must be at most"),
        ("layers", lambda array: array * 0, "at least 1"),
        ("shape", lambda array: array * 10**6, "observations of shape"),
        ("shape", None, "observations of shape"),
        ("scales", lambda array: array[:, :1], "scales is float32"),
        ("scales", lambda array: np.repeat(array, 9, axis=0), "scales is float32"),
        ("centre", lambda array: array[:-1], "centre is float32"),
        ("scale", lambda array: array * np.nan, "finite number"),
        ("model.1.weight", lambda array: array[:, :-1], "do not fit the network"),
        ("model.1.weight", lambda array: array.astype(np.float64), "not float32"),
        ("model.1.bias", lambda array: array * np.inf, "finite number"),
        ("model.1.bias", None, "do not fit the network"),
    ],
)
def test_a_forged_network_is_refused_before_memory_is_taken(image_fit, tmp_path, name, change, why):
    folder = forged(image_fit, tmp_path / "phi", name, change)
    with pytest.raises(FileError, match=f"phi is not a complete fit: (.|\n)*({why})"):
        cs.FittedCeilings.load(folder)


def test_the_caller_s_number_of_threads_holds_again_afterwards(vectors):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        fit(vectors, **BRIEF)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


TOLERANCE = 1e-4
"""Sums in another order differ by rounding, which training makes larger; as a share of the range of values."""

TOGETHER = """
import json, sys
from unittest.mock import patch
import torch._dynamo  # which fits import: once for both
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
sys.path.insert(0, sys.argv[1])
from test_network import BRIEF, ONE_HOT, fit, transitions, watched
def fit_rows():
    rows = transitions([watched(name, seed=0, episodes=60) for name in ("seeing", "random")], ONE_HOT)
    with patch("torch.distributed.all_reduce", wraps=torch.distributed.all_reduce) as summed:
        return fit(rows, **BRIEF)(ONE_HOT).tolist(), summed.call_count
together = {"min_nodes": 1, "max_nodes": 1, "nproc_per_node": 2, "start_method": "fork"}
alone = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "run_id": "test", "monitor_interval": 0.1}
print(json.dumps(elastic_launch(LaunchConfig(**together, **alone), fit_rows)()))
"""


def test_two_processes_give_what_one_gives():
    """Started by what torchrun calls, but forked from one process that has imported torch."""
    rows = transitions([watched(name, seed=0, episodes=60) for name in ("seeing", "random")], ONE_HOT)
    alone = fit(rows, **BRIEF)(ONE_HOT)
    command = [sys.executable, "-c", TOGETHER, os.path.dirname(__file__)]
    ran = subprocess.run(command, timeout=300, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert sorted(found) == ["0", "1"]
    for values, sums in found.values():
        assert sums > 10  # they did not fit one by one
        assert np.array(values) == pytest.approx(alone, abs=TOLERANCE * np.ptp(alone))
