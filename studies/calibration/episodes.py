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

import argparse
import itertools
import math
import sys
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from scipy.special import rel_entr

from causal_shaping.data.space import UNKNOWN
from studies.worlds.persistent import drug_world, random_world

CONFIDENCE = 0.95
"""The probability with which all bounds of a sample hold at once."""


# The bound -------------------------------------------------------------------------------------------------------


class Episode(NamedTuple):
    """A logged episode; where it neither ended nor went on for sure, nobody knows which."""

    weight: float
    steps: list[tuple[int, int, float]]  # state, action, reward
    ended: bool  # it ended for sure
    went_on: bool  # it was cut, and would have gone on for sure


def bound_episodes(logs, horizon, reward_max, *, discount=1.0, reward_min=None, confidence=None, masses=None):
    """Return upper bounds of what any policy earns: by first state [states], and on average over first states.

    Args:
        logs: one for each source, of one space; the smallest bound of all sources counts.
        horizon: how many steps an episode has; later rows are not used.
        reward_max: the most that a step can pay.
        discount: the factor on future reward.
        reward_min: with confidence, the least that a reward counts as, chosen without looking at the logs.
        confidence: the probability that all bounds hold at once; None for a plug-in estimate, or a population.
        masses: for each of the logs, the mass of each episode, if they are the whole population and not a sample.
    """
    least = -math.inf if confidence is None else reward_min
    highest, lowest = most_of(reward_max, horizon, discount), -most_of(-least, horizon, discount)
    choices = logs[0].space.is_admissible.sum(axis=1)
    sources = [grouped(one, None if masses is None else masses[i]) for i, one in enumerate(logs)]
    values, mean = np.full(len(choices), highest[horizon]), float(highest[horizon])

    def limit(value, weight, split):
        if confidence is None:
            return value
        return upper_limit(value, weight, (1 - confidence) / 2 / split, lowest[horizon], highest[horizon])

    for by_first in sources:
        found = {
            state: (best_mean(episodes, 0, choices, highest, discount, least), sum(one.weight for one in episodes))
            for state, episodes in by_first.items()
        }
        for state, (value, weight) in found.items():
            values[state] = min(values[state], limit(value, weight, sum(map(len, sources))))
        total = sum(weight for _, weight in found.values())
        if total:
            average = sum(value * weight for value, weight in found.values()) / total
            mean = min(mean, limit(average, total, len(sources)))
    return values, mean


def grouped(logs, masses):
    """Return the episodes of logs by first state."""
    begins = np.flatnonzero(logs.step == 0).tolist()
    rows = list(zip(logs.state.tolist(), logs.action.tolist(), logs.reward.tolist(), strict=True))
    weights = np.ones(len(begins)) if masses is None else masses
    went_on = logs.truncated | (logs.next_state != UNKNOWN)
    groups = defaultdict(list)
    for weight, (begin, end) in zip(weights, itertools.pairwise([*begins, len(rows)]), strict=True):
        one = Episode(float(weight), rows[begin:end], bool(logs.terminated[end - 1]), bool(went_on[end - 1]))
        groups[one.steps[0][0]].append(one)
    return groups


def best_mean(episodes, step, choices, most, discount, least):
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


def most_of(reward_max, horizon, discount):
    """Return the most that 0, 1, ..., horizon steps can pay: a cost is paid once, as the next step may be the last."""
    if reward_max < 0:
        return np.append(0.0, np.full(horizon, reward_max))
    return np.append(0.0, reward_max * np.cumsum(discount ** np.arange(horizon)))


def upper_limit(mean, n, alpha, low, high):
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


def truth_of(world):
    """Return the bounds of a world's population, and the best mean return: by first state, and on average."""
    logs, masses = zip(*(world.population(i) for i in range(len(world.demonstrators))), strict=True)
    found = bound_episodes(logs, world.horizon, float(world.reward.max()), discount=world.discount, masses=masses)
    best = np.array([world.optimum(state) for state in range(world.shape[0])])
    return found, (best, float((world.start.sum(axis=0) * best).sum()))


def too_low(found, least):
    """Whether some bound lies below what it must not."""
    return bool((found[0] < least[0] - 1e-9).any() or found[1] < least[1] - 1e-9)


def most_in(world):
    """Return the most that an episode can pay."""
    return most_of(float(world.reward.max()), world.horizon, world.discount)[world.horizon]


def measure_population(horizon, worlds):
    """Return how many of many worlds have a bound below the optimum, and the mean share of the gap that bounds close.

    Hidden causes last over the episode. The gap is that between the most that an episode can pay and the optimum.
    """
    failed, shares = 0, []
    for seed in range(worlds):
        world = random_world(np.random.default_rng([horizon, seed]), horizon, largest=3 if horizon < 5 else 2)
        found, best = truth_of(world)
        failed += too_low(found, best)
        most = most_in(world)
        shares += [(most - v) / (most - b) for v, b in zip(found[0], best[0], strict=True) if most - b > 1e-9]
    return failed, float(np.mean(shares))


def measure_confidence(world, episodes, samples):
    """Return in how many samples some bound is too low, the mean bound, and the optimum.

    The optimum is far below where demonstrators depart; so bounds are also held against those of the population.
    """
    exact, best = truth_of(world)
    least = np.maximum(best[0], exact[0]), max(best[1], exact[1])
    rewards = {"reward_max": float(world.reward.max()), "reward_min": float(world.reward.min())}
    failed, means = 0, []
    for seed in range(samples):
        rng = np.random.default_rng([seed, episodes])
        logs = [world.sample(i, episodes, rng) for i in range(len(world.demonstrators))]
        found = bound_episodes(logs, world.horizon, discount=world.discount, confidence=CONFIDENCE, **rewards)
        failed += too_low(found, least)
        means.append(found[1])
    return failed, float(np.mean(means)), best[1]


def small_worlds():
    """Yield worlds with a hidden cause that lasts, and their names."""
    for days in (2, 4):
        yield f"two drugs, {days} days", drug_world(days, cure=0.6, preferred=0.7)
    for horizon, seed in itertools.product((1, 2, 3), (1, 2)):
        world = random_world(np.random.default_rng([17, horizon, seed]), horizon)
        yield f"random world {seed}, {horizon} step{'s' * (horizon > 1)}", world


def main(given):
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
    print("\n| sample | samples | bound too low | mean bound | optimum | without logs |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for (name, world), episodes in itertools.product(small_worlds(), (30, 300)):
        failed, mean, best = measure_confidence(world, episodes, arguments.samples)
        row = (f"{name}, {episodes} episodes", arguments.samples, failed)
        print(f"| {' | '.join(map(str, row))} | {mean:.3f} | {best:.3f} | {most_in(world):.3f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
