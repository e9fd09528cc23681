"""Bound what any policy earns in an episode although a hidden cause lasts over it, and measure how little that says.

Value ceilings need hidden causes that are drawn afresh at each step, and Markov states. These
bounds need neither. Let W be the most that the steps left can pay, pi a policy that decides by the
history (states, its own actions, rewards so far), and tau the first step at which the demonstrator
departs from pi. Up to tau the logged episode is one that pi could have met; after it, pi earns W at
most. So from a first state pi is worth at most

    E[ rewards before tau + discount^tau W_tau ]

in the logs, and the largest over pi bounds the optimum. An action that exists but was never tried
after a history makes it W there. The more decisions an episode has, the sooner a demonstrator
departs, and the less the bound says. It holds for first states alone: which later states a
demonstrator comes to tells what it knew of the hidden cause.

With confidence, let pi be the optimal policy, unknown but fixed. Rewards before tau plus
discount^tau W_tau have a mean of the optimum or more, and the maximum over policies is at least
their mean over the logged episodes. So a limit of Chernoff and Hoeffding for one mean, taken at
that maximum, is wrong with probability alpha at most, without a union over policies. Half of alpha
is split over the pairs of a source and a first state, half over the means of the sources.

    python -m studies.calibration.episodes --help
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr

import causal_shaping as cs
from causal_shaping.data.space import UNKNOWN
from studies.worlds.persistent import PersistentWorld, drug_world, random_world

CONFIDENCE = 0.95
"""The probability with which all bounds of a sample hold at once."""

HELD_OUT = 10
"""One in so many episodes chooses the least reward, where none is given, and is not used again."""


# The bound -------------------------------------------------------------------------------------------------------


class Episode(NamedTuple):
    """A logged episode; where it neither ended nor went on for sure, nobody knows which."""

    weight: float
    steps: list[tuple[int, int, float]]  # state, action, reward
    ended: bool  # it ended for sure
    went_on: bool  # it was cut, and would have gone on for sure


class EpisodeBounds(NamedTuple):
    """Upper bounds of what any policy earns in an episode: by first state [states], and on average over them."""

    values: npt.NDArray[np.float64]
    mean: float


def bound_episodes(
    logs: Sequence[cs.Logs],
    horizon: int,
    reward_max: float,
    *,
    discount: float = 1.0,
    confidence: float | None = None,
    reward_min: float | None = None,
    masses: Sequence[npt.ArrayLike] | None = None,
) -> EpisodeBounds:
    """Return the bounds of logs that share a space, the smallest of all sources.

    Args:
        logs: one for each source.
        horizon: how many steps an episode has; later rows are not used.
        reward_max: the most that a step can pay.
        discount: the factor on future reward.
        confidence: the probability that all bounds hold at once; None for a plug-in estimate, or a population.
        reward_min: with confidence, the least that a reward counts as, chosen without looking at the logs.
        masses: for each of the logs, the mass of each episode, if they are the whole population and not a sample.
    """
    sources = [listed(one, None if masses is None else masses[i]) for i, one in enumerate(logs)]
    if confidence is not None and reward_min is None:
        held_out = [episode for episodes in sources for episode in episodes[::HELD_OUT]]
        reward_min = min(reward for episode in held_out for _, _, reward in episode.steps)
        sources = [[one for i, one in enumerate(episodes) if i % HELD_OUT] for episodes in sources]
    least = -math.inf if confidence is None or reward_min is None else reward_min
    highest, lowest = most_of(reward_max, horizon, discount), -most_of(-least, horizon, discount)
    choices = logs[0].space.is_admissible.sum(axis=1)
    by_first = [grouped(episodes) for episodes in sources]
    values, mean = np.full(len(choices), highest[horizon]), float(highest[horizon])
    alpha = 0.0 if confidence is None else (1 - confidence) / 2
    for first_states in by_first:
        total = value_of_all = 0.0
        for state, episodes in first_states.items():
            value = best_mean(episodes, 0, choices, highest, discount, least)
            weight = sum(episode.weight for episode in episodes)
            total, value_of_all = total + weight, value_of_all + weight * value
            if alpha:
                pairs = sum(map(len, by_first))
                value = upper_limit(value, len(episodes), alpha / pairs, lowest[horizon], highest[horizon])
            values[state] = min(values[state], value)
        if total:
            value = value_of_all / total
            if alpha:
                value = upper_limit(value, int(total), alpha / len(logs), lowest[horizon], highest[horizon])
            mean = min(mean, value)
    return EpisodeBounds(values, mean)


def listed(logs: cs.Logs, masses: npt.ArrayLike | None) -> list[Episode]:
    """Return the episodes of logs."""
    begins = np.flatnonzero(logs.step == 0).tolist()
    rows = list(zip(logs.state.tolist(), logs.action.tolist(), logs.reward.tolist(), strict=True))
    weights = np.ones(len(begins)) if masses is None else np.asarray(masses, dtype=np.float64)
    went_on = logs.truncated | (logs.next_state != UNKNOWN)
    return [
        Episode(weight, rows[begin:end], bool(logs.terminated[end - 1]), bool(went_on[end - 1]))
        for weight, (begin, end) in zip(weights.tolist(), itertools.pairwise([*begins, len(rows)]), strict=True)
    ]


def grouped(episodes: Sequence[Episode]) -> dict[int, list[Episode]]:
    """Return the episodes by first state."""
    groups = defaultdict(list)
    for episode in episodes:
        groups[episode.steps[0][0]].append(episode)
    return groups


def best_mean(
    episodes: Sequence[Episode],
    step: int,
    choices: npt.NDArray[Any],
    most: npt.NDArray[np.float64],
    discount: float,
    least: float,
) -> float:
    """Return the most that a policy can earn from a step on, on average over episodes that share their history.

    With p(x) the share of episodes that go on with x, and W the most that the steps left can pay,

        V(history) = max over x of  p(x) E[reward + discount V(later history) | x] + (1 - p(x)) W,    at most W.

    Args:
        episodes: with equal states up to this step, and equal actions and rewards before it.
        step: how many steps are over.
        choices: int [states], how many actions exist in a state.
        most: the most that 0, 1, ... steps can pay, [horizon + 1].
        discount: the factor on future reward.
        least: smaller rewards count as this.
    """
    left = len(most) - 1 - step
    by_action = defaultdict(list)
    for episode in episodes:
        by_action[episode.steps[step][1]].append(episode)
    if len(by_action) < choices[episodes[0].steps[step][0]]:
        return float(most[left])
    total, best = sum(episode.weight for episode in episodes), -math.inf
    for same in by_action.values():
        earned, later = 0.0, defaultdict(list)
        for episode in same:
            reward = episode.steps[step][2]
            earned += episode.weight * max(reward, least)
            if left > 1 and len(episode.steps) > step + 1:
                later[reward, episode.steps[step + 1][0]].append(episode)
            elif not episode.ended:  # nobody knows what followed, or whether anything did
                rest = most[left - 1] if episode.went_on else max(most[left - 1], 0.0)
                earned += episode.weight * discount * rest
        for history in later.values():
            weight = sum(episode.weight for episode in history)
            earned += discount * weight * best_mean(history, step + 1, choices, most, discount, least)
        departed = total - sum(episode.weight for episode in same)
        best = max(best, (earned + departed * most[left]) / total)
    return float(min(best, most[left]))


def most_of(reward_max: float, horizon: int, discount: float) -> npt.NDArray[np.float64]:
    """Return the most that 0, 1, ..., horizon steps can pay: a cost is paid once, as the next step may be the last."""
    if reward_max < 0:
        return np.append(0.0, np.full(horizon, reward_max))
    return np.append(0.0, reward_max * np.cumsum(discount ** np.arange(horizon)))


def upper_limit(mean: float, n: int, alpha: float, low: float, high: float) -> float:
    """Return an upper limit of the mean of n trials between `low` and `high`, wrong with probability alpha at most.

    Each trial must have that mean or a larger one, given all before it. With kl the relative entropy of two coins, the
    limit is the largest u with n kl(mean, u) <= log(1 / alpha).
    """
    if high <= low:
        return high
    share = min(max((mean - low) / (high - low), 0.0), 1.0)
    below, above = share, 1.0
    for _ in range(60):
        middle = (below + above) / 2
        inside = n * (rel_entr(share, middle) + rel_entr(1 - share, 1 - middle)) <= -math.log(alpha)
        below, above = (middle, above) if inside else (below, middle)
    return low + (high - low) * above


# What it says ----------------------------------------------------------------------------------------------------


def measure_population(horizon: int, worlds: int) -> tuple[int, float]:
    """Return how many of many worlds have a bound below the optimum, and the mean share of the gap that bounds close.

    Hidden causes last over the episode. The gap is that between the most that an episode can pay and the optimum.
    """
    failed, shares = 0, []
    for seed in range(worlds):
        world = random_world(np.random.default_rng([horizon, seed]), horizon, largest=3 if horizon < 5 else 2)
        logs, masses = zip(*(world.population(i) for i in range(len(world.demonstrators))), strict=True)
        reward_max = float(world.reward.max())
        found = bound_episodes(logs, horizon, reward_max, discount=world.discount, masses=masses)
        best, mean = optimum(world)
        failed += bool((found.values < best - 1e-9).any() or found.mean < mean - 1e-9)
        most = most_of(reward_max, horizon, world.discount)[horizon]
        shares += [(most - v) / (most - b) for v, b in zip(found.values, best, strict=True) if most - b > 1e-9]
    return failed, float(np.mean(shares))


def measure_confidence(world: PersistentWorld, episodes: int, samples: int, given: bool) -> tuple[int, float]:
    """Return in how many samples some bound lies below the optimum or below its population's, and the mean bound.

    The optimum is far below where demonstrators depart; so bounds are also held against those of the population.
    """
    reward_max = float(world.reward.max())
    logs, masses = zip(*(world.population(i) for i in range(len(world.demonstrators))), strict=True)
    exact = bound_episodes(logs, world.horizon, reward_max, discount=world.discount, masses=masses)
    best, mean = optimum(world)
    failed, means = 0, []
    for seed in range(samples):
        rng = np.random.default_rng([seed, episodes])
        found = bound_episodes(
            [world.sample(i, episodes, rng) for i in range(len(logs))],
            world.horizon,
            reward_max,
            discount=world.discount,
            confidence=CONFIDENCE,
            reward_min=float(world.reward.min()) if given else None,
        )
        low, low_mean = np.maximum(best, exact.values), max(mean, exact.mean)
        failed += bool((found.values < low - 1e-9).any() or found.mean < low_mean - 1e-9)
        means.append(found.mean)
    return failed, float(np.mean(means))


def optimum(world: PersistentWorld) -> tuple[npt.NDArray[np.float64], float]:
    """Return the best mean return by first state, and its mean over first states."""
    best = np.array([world.optimum(state) for state in range(world.shape[0])])
    return best, float((world.start.sum(axis=0) * best).sum())


def small_worlds() -> dict[str, PersistentWorld]:
    """Return worlds with a hidden cause that lasts, by name."""
    worlds = {f"two drugs, {days} days": drug_world(days, cure=0.6, preferred=0.7) for days in (2, 4)}
    for horizon, seed in itertools.product((1, 2, 3), (1, 2)):
        name = f"random world {seed}, {horizon} step{'s' * (horizon > 1)}"
        worlds[name] = random_world(np.random.default_rng([17, horizon, seed]), horizon)
    return worlds


def main(given: Sequence[str]) -> None:
    """Measure, and print a table as each row is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizons", type=int, default=5, help="random worlds have 1 to so many steps (%(default)s)")
    parser.add_argument("--worlds", type=int, default=400, help="random worlds of each horizon (%(default)s)")
    parser.add_argument("--samples", type=int, default=400, help="samples of logs from each small world (%(default)s)")
    arguments = parser.parse_args(given)
    print("| population | worlds | bound below the optimum | gap closed |\n| --- | ---: | ---: | ---: |")
    for horizon in range(1, arguments.horizons + 1):
        failed, share = measure_population(horizon, arguments.worlds)
        print(f"| {horizon} step{'s' * (horizon > 1)} | {arguments.worlds} | {failed} | {share:.0%} |", flush=True)
    print("\n| sample | least reward | samples | bound too low | mean bound | optimum | without logs |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for (name, world), episodes, known in itertools.product(small_worlds().items(), (30, 300), (True, False)):
        failed, mean = measure_confidence(world, episodes, arguments.samples, known)
        most = most_of(float(world.reward.max()), world.horizon, world.discount)[world.horizon]
        row = (f"{name}, {episodes} episodes", "given" if known else "seen", arguments.samples, failed)
        print(f"| {' | '.join(map(str, row))} | {mean:.3f} | {optimum(world)[1]:.3f} | {most:.3f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
