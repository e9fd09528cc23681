"""A misspelt keyword argument is an error that names the nearest one."""

import gymnasium as gym
import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping._registration import ENVIRONMENTS
from causal_shaping.worlds.environments import WorldEnv

EASY = cs.load_world("lavacross-easy")
PHI = cs.Potential.zero(EASY)
LOGS = EASY.collect("good", 100)


def near(function, wrong, right):
    """Return what the error says of a name that should be another."""
    return rf"^{function} takes no {wrong}=\. Did you mean {right}=\?$"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cs.read_logs("no-file.csv", stat="x"), near("read_logs", "stat", "state")),
        (lambda: cs.confounding_of(LOGS, "x", quantile=3), near("confounding_of", "quantile", "quantiles")),
        (lambda: cs.inspect_continuous(LOGS, level_=0.1), near("inspect_continuous", "level_", "level")),
        (lambda: cs.check_potential(WorldEnv(EASY), PHI, labl=int), near("check_potential", "labl", "label")),
        (lambda: PHI.plot(stp=3), near("plot", "stp", "step")),
        (
            lambda: cs.load_world("lavacross-easy", horizn=3),
            near(r"load_world\('lavacross-easy'\)", "horizn", "horizon"),
        ),
        (lambda: cs.load_world("windy-field", nois_sd=1), near(r"load_world\('windy-field'\)", "nois_sd", "noise_sd")),
        (lambda: cs.load_world("lavacross-easy", speed=3), "takes no speed=. It takes name, coins, horizon, wind, dem"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest_one(call, message):
    with pytest.raises(cs.ArgumentError, match=message):
        call()


def test_columns_beside_transitions_are_refused_as_they_would_change_nothing():
    rows = cs.read_transitions(LOGS)
    with pytest.raises(cs.ArgumentError, match="state= is for logs that are to be read; these were read before"):
        cs.inspect_continuous(rows, state="x")


def test_what_environments_of_version_0_2_took_says_what_takes_its_place():
    for name in (ENVIRONMENTS["lavacross-easy"], "causal_shaping/WindyField-v0"):
        with pytest.raises(cs.ArgumentError, match=r"takes no reveal_noise=\. .* env\.unwrapped\.see\(demonstrator\)"):
            gym.make(name, reveal_noise=True)
    with pytest.raises(
        cs.ArgumentError, match=r"'vector'; use 'state' or 'image'.*FlattenObservation.*TransformObserv"
    ):
        gym.make(ENVIRONMENTS["lavacross-easy"], observation="vector")
    wrapped = gym.wrappers.FlattenObservation(gym.make(ENVIRONMENTS["lavacross-easy"]))
    assert np.array_equal(np.sort(wrapped.reset(seed=0)[0])[-2:], [0, 1])


def test_a_message_about_a_column_names_the_argument_as_python_writes_it():
    with pytest.raises(cs.ArgumentError, match=r"Name the right one in state= or --state\.$"):
        cs.read_logs(LOGS.to_pandas(), state="z")
