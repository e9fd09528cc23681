"""Bounds of whole episodes: the best of all policies tried one by one, and no less than the optimum."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from properties import fewer

import causal_shaping as cs
from causal_shaping.data.space import UNKNOWN
from studies.calibration.episodes import bound_episodes, main


def short_logs(episodes):
    """Return logs of episodes, each (rows of (state, action, reward), how it stopped)."""
    rows = []
    for i, (steps, stop) in enumerate(episodes):
        for h, (state, action, reward) in enumerate(steps):
            last = h == len(steps) - 1
            after = UNKNOWN if last else steps[h + 1][0]
            rows.append((i, h, state, action, reward, after, last and stop == "ended", last and stop == "cut"))
    names = ("episode", "step", "state", "action", "reward", "next_state", "terminated", "truncated")
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    return cs.Logs(cs.Space(range(2), range(2)), "ward", **columns)


@st.composite
def few_episodes(draw):
    """A few short episodes, rewards of 0, 1/2, 1 with an offset, and how each stopped."""
    offset = draw(st.sampled_from([0.0, -0.5, -2.0]))
    row = st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from([0.0, 0.5, 1.0]).map(lambda r: r + offset))
    stop = st.sampled_from(["ended", "cut", "unknown"])
    return offset, draw(st.lists(st.tuples(st.lists(row, min_size=1, max_size=3), stop), min_size=1, max_size=5))


def best_policy(episodes, first, horizon, bound, discount):
    """Try every policy: a choice for each history of a logged episode; return the best mean of what it may earn."""

    def most(left):
        return sum(bound * discount**h for h in range(left)) if bound >= 0 else (bound if left else 0.0)

    own = [(steps[:horizon], stop if len(steps) <= horizon else "cut") for steps, stop in episodes]
    own = [(steps, stop) for steps, stop in own if steps[0][0] == first]
    histories = list({(*steps[:h], steps[h][0]) for steps, _ in own for h in range(len(steps))})
    best = -math.inf
    for choice in itertools.product(range(2), repeat=len(histories)):
        policy, total = dict(zip(histories, choice, strict=True)), 0.0
        for steps, stop in own:
            for h, (state, x, reward) in enumerate(steps):
                if policy[*steps[:h], state] != x:
                    total += discount**h * most(horizon - h)
                    break
                total += discount**h * reward
            else:
                left = horizon - len(steps)
                rest = {"ended": 0.0, "cut": most(left), "unknown": max(0.0, most(left))}[stop] if left else 0.0
                total += discount ** len(steps) * rest
        best = max(best, total / len(own))
    return min(best, most(horizon))


@given(few_episodes(), st.integers(1, 4), st.sampled_from([1.0, 0.5]))
@fewer(60)
def test_the_bound_is_the_best_of_all_policies(drawn, horizon, discount):
    offset, episodes = drawn
    values, _ = bound_episodes([short_logs(episodes)], horizon, 1.0 + offset, discount=discount)
    for state in {steps[0][0] for steps, _ in episodes}:
        expected = best_policy(episodes, state, horizon, 1.0 + offset, discount)
        assert values[state] == pytest.approx(expected, abs=1e-12)


def test_confidence_is_the_limit_of_chernoff_and_hoeffding():
    episodes = [([(0, 0, 0.0)], "ended")] * 30 + [([(0, 1, 0.0)], "ended")] * 30
    values, _ = bound_episodes([short_logs(episodes)], 1, 1.0, confidence=0.9, reward_min=0.0)
    half, u = 0.5, float(values[0])  # half of the episodes depart at once, and may have earned 1
    divergence = half * math.log(half / u) + (1 - half) * math.log((1 - half) / (1 - u))
    assert 60 * divergence == pytest.approx(-math.log(0.05))


def test_the_program_finds_no_bound_below_the_optimum(capsys):
    main(["--horizons", "3", "--worlds", "8", "--samples", "3"])
    out = capsys.readouterr().out
    populations = re.findall(r"\| \d steps? \| 8 \| (\d+) \| \d+% \|", out)
    samples = re.findall(r"episodes \| 3 \| (\d+) \|", out)
    assert populations == ["0"] * 3
    assert samples == ["0"] * 16
