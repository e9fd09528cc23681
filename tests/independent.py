"""Worlds whose truth is known, in plain NumPy: nothing here uses the library's models, counting or bounds.

- `TrueWorld`, `Demonstrator`: tables of a world and of somebody who is logged in it.
- `random_world`, `random_demonstrators`: worlds with hidden states, inadmissible actions, unknown outcomes, ...
- `optimum`: V* and Q*; `true_gamma`, `seen`, `support_holds`: which assumptions are true.
- `rows`, `sampled_rows`, `counts_of`: what logs show, as exact masses and as samples, put into `Counts`.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

import causal_shaping as cs

NOWHERE = -1
"""The next state of an end without a next state, and of a row whose outcome is unknown."""


# T: the steps whose tables differ, 1 if none do. s, x, u: state, action, hidden noise.
@dataclass(frozen=True)
class TrueWorld:
    next_state: np.ndarray  # int [T, s, x, u], NOWHERE only where the episode ends
    ends: np.ndarray  # bool [T, s, x, u]: the episode ends with this step
    reward: np.ndarray  # [T, s, x, u]
    noise: np.ndarray  # [T, s, u], adds to 1 over u
    terminal: np.ndarray  # bool [s]: entering it ends the episode
    start: np.ndarray  # [s]
    admissible: np.ndarray  # bool [s, x]
    hidden: np.ndarray  # bool [s]: states that no demonstrator lets happen
    horizon: int
    discount: float = 1.0
    stationary: bool = False

    def at(self, h):
        """The position of a step in the tables."""
        return h if len(self.noise) > 1 else 0

    @property
    def alive(self):
        return ~self.terminal

    def outcome(self, h, s, x, u):
        """What follows: (next state, ended, reward)."""
        where = (self.at(h), s, x, u)
        return int(self.next_state[where]), bool(self.ends[where]), float(self.reward[where])

    def outcomes(self, h, s, x):
        """The outcomes of do(x) in s: {outcome: the noises that bring it about}."""
        found = defaultdict(list)
        for u in np.flatnonzero(self.noise[self.at(h), s]):
            found[self.outcome(h, s, x, u)].append(int(u))
        return dict(found)

    @property
    def reward_range(self):
        """The least and the most that any step can pay."""
        possible = np.broadcast_to((self.noise > 0)[:, :, None, :], self.reward.shape)
        possible = possible & (self.alive[:, None] & self.admissible)[None, :, :, None]
        return float(self.reward[possible].min()), float(self.reward[possible].max())


@dataclass(frozen=True)
class Demonstrator:
    beta: np.ndarray  # [1 or steps, s, u, x]
    length: int  # how many steps an episode of the logs has at most
    missing: np.ndarray  # [s, x, u]: how often the log lacks what followed

    def decide(self, h):
        return self.beta[min(h, len(self.beta) - 1)]


# Truth -----------------------------------------------------------------------------------------------------------


def backup(world, h, following):
    """Q*[s, x] from the values of the next step; -inf where an action is inadmissible."""
    t = world.at(h)
    after = np.where(world.ends[t], 0.0, following[world.next_state[t]])  # NOWHERE only where it ends
    q = np.einsum("su,sxu->sx", world.noise[t], world.reward[t] + world.discount * after)
    return np.where(world.admissible, q, -np.inf)


def optimum(world):
    """V* and Q*: [horizon, s] and [horizon, s, x]; [s] and [s, x] of an endless episode if the world is stationary."""
    values = np.zeros(len(world.terminal))
    if world.stationary:
        for _ in range(100_000):
            q = backup(world, 0, values)
            new = np.where(world.terminal, 0.0, q.max(-1))
            done = np.abs(new - values).max() < 1e-13 * (1 + np.abs(new).max())
            values = new
            if done:
                break
        return values, backup(world, 0, values)
    all_values, all_q = [], []
    for h in reversed(range(world.horizon)):
        q = backup(world, h, values)
        values = np.where(world.terminal, 0.0, q.max(-1))
        all_values.append(values)
        all_q.append(q)
    return np.array(all_values[::-1]), np.array(all_q[::-1])


def vacuous(world, reward_max):
    """What can be said of a state without logs: [horizon], or one number."""
    if world.stationary:
        per_step = math.inf if world.discount == 1 else 1 / (1 - world.discount)
    else:
        left = np.arange(world.horizon, 0, -1)
        per_step = np.array([(world.discount ** np.arange(n)).sum() for n in left])
    return reward_max * per_step if reward_max > 0 else reward_max * np.ones_like(per_step)


def visits(world, demonstrator):
    """How often an episode is in a state at a step: [length, s]."""
    found = np.zeros((demonstrator.length, len(world.terminal)))
    found[0] = world.start
    for h in range(demonstrator.length - 1):
        t = world.at(h)
        mass = found[h][:, None, None] * world.noise[t][:, :, None] * demonstrator.decide(h)  # [s, u, x]
        mass = mass.transpose(0, 2, 1)
        goes_on = ~world.ends[t]
        np.add.at(found[h + 1], world.next_state[t][goes_on], mass[goes_on])
    return found


def joint(world, demonstrator, step_indexed):
    """P(u, x | s) as logged: {(step or None, s): [u, x]}, of the states that are visited."""
    seen = visits(world, demonstrator)
    found = {}
    for h, s in zip(*np.nonzero(seen > 0), strict=True):
        key = (int(h) if step_indexed else None, int(s))
        here = seen[h, s] * world.noise[world.at(h), s][:, None] * demonstrator.decide(h)[s]
        found[key] = found.get(key, 0.0) + here
    return {key: table / table.sum() for key, table in found.items()}


def true_gamma(world, demonstrator, step_indexed):
    """The smallest Gamma that is true of a source, by the definition of the marginal sensitivity model.

    The odds of x, given the outcome that x would have, against the odds of x given s alone.
    """
    worst = 1.0
    for (h, s), table in joint(world, demonstrator, step_indexed).items():
        noise = table.sum(1)
        for x in np.flatnonzero(world.admissible[s]):
            p = table[:, x].sum()
            if p <= 1e-12 or p >= 1 - 1e-12:  # never taken: it shows nothing; always: there is nothing to compare
                continue
            for noises in world.outcomes(h or 0, s, x).values():
                q = table[noises, x].sum() / noise[noises].sum()
                if q <= 1e-12 or q >= 1 - 1e-12:
                    return math.inf
                ratio = (q / (1 - q)) / (p / (1 - p))
                worst = max(worst, ratio, 1 / ratio)
    return worst


# Logs ------------------------------------------------------------------------------------------------------------


def rows(world, demonstrator):
    """What logs converge to: {(h, s, x, next state, terminated, reward): mass an episode}; UNKNOWN is NOWHERE."""
    found = defaultdict(float)
    for (h, s), visited in np.ndenumerate(visits(world, demonstrator)):
        if visited <= 0:
            continue
        chances = visited * world.noise[world.at(h), s][:, None] * demonstrator.decide(h)[s]
        for u, x in zip(*np.nonzero(chances > 0), strict=True):
            after, ended, reward = world.outcome(h, s, x, u)
            lost = demonstrator.missing[s, x, u]
            for share, outcome in ((1 - lost, (after, ended)), (lost, (NOWHERE, False))):
                if share > 0:
                    found[h, s, int(x), *outcome, reward] += share * chances[u, x]
    return dict(found)


def sampled_rows(world, demonstrator, episodes, rng, jitter=0.0):
    """What so many episodes show: {(h, s, x, next state, terminated, reward): n}, rewards off by up to `jitter`.

    Episodes are independent, so what follows those that are in one state at one step is one multinomial draw.
    """
    found = defaultdict(int)
    here = rng.multinomial(episodes, world.start)
    for h in range(demonstrator.length):
        following = np.zeros_like(here)
        for s in np.flatnonzero(here):
            chances = world.noise[world.at(h), s][:, None] * demonstrator.decide(h)[s]
            times = rng.multinomial(here[s], chances.ravel() / chances.sum()).reshape(chances.shape)
            for u, x in np.argwhere(times):
                after, ended, reward = world.outcome(h, s, x, u)
                if not ended:
                    following[after] += times[u, x]
                lost = rng.binomial(times[u, x], demonstrator.missing[s, x, u])
                for n, outcome in ((times[u, x] - lost, (after, ended)), (lost, (NOWHERE, False))):
                    if jitter:
                        for moved in reward + rng.uniform(-jitter, jitter, n):
                            found[h, int(s), int(x), *outcome, float(moved)] += 1
                    elif n:
                        found[h, int(s), int(x), *outcome, reward] += int(n)
        here = following
    return dict(found)


def counts_of(world, shown, *, step_indexed, complete, population=True, declare_terminal=False, edges=None):
    """Put rows by source {name: rows} into counts, state s labelled s; hidden states are listed if `complete`."""
    held = {row[1] for rows_shown in shown.values() for row in rows_shown}
    held |= {row[3] for rows_shown in shown.values() for row in rows_shown} - {NOWHERE}
    labels = [s for s in range(len(world.terminal)) if complete or s in held]
    position = {s: i for i, s in enumerate(labels)} | {NOWHERE: NOWHERE}
    space = cs.Space(
        labels,
        range(world.admissible.shape[1]),
        terminal=[s for s in labels if world.terminal[s]] if declare_terminal else (),
        complete=complete,
        admissible={s: np.flatnonzero(world.admissible[s]).tolist() for s in labels if not world.admissible[s].all()},
    )
    merged = defaultdict(float)
    for i, rows_shown in enumerate(shown.values()):
        for (h, *rest), n in rows_shown.items():
            merged[i, h if step_indexed else None, *rest] += n
    columns = list(zip(*merged, strict=True))
    n, reward = np.array(list(merged.values())), np.array(columns[6])
    counts = cs.Counts(
        space,
        tuple(shown),
        source=np.array(columns[0]),
        step=np.array(columns[1]) if step_indexed else None,
        state=np.array([position[s] for s in columns[2]]),
        action=np.array(columns[3]),
        next_state=np.array([position[s] for s in columns[4]]),
        terminated=np.array(columns[5]),
        n=n,
        reward_sum=n * reward,
        reward_min=reward,
        reward_max=reward,
        population=population,
    )
    return counts if edges is None else counts.with_reward_bins(cs.Bins(edges=edges))


def with_bin(outcome, edges):
    """An outcome as counts know it: its reward, or the bin of its reward."""
    after, ended, reward = outcome
    return after, ended, reward if edges is None else int(np.searchsorted(edges, reward, side="right"))


def seen(shown, step_indexed, edges=None):
    """What all sources together saw: {(step or None, s): {(x, outcome)}}, None as outcome where it is unknown."""
    found = defaultdict(set)
    for rows_shown in shown.values():
        for h, s, x, after, ended, reward in rows_shown:
            known = after != NOWHERE or ended
            outcome = with_bin((after, ended, reward), edges) if known else None
            found[h if step_indexed else None, s].add((x, outcome))
    return dict(found)


def support_holds(world, shown, support, step_indexed, edges=None):
    """Whether all that a tried action can do was seen to follow the state ("observed") or the action there."""
    for (h, s), pairs in seen(shown, step_indexed, edges).items():
        for x in {x for x, _ in pairs}:
            allowed = {outcome for action, outcome in pairs if support == "observed" or action == x}
            if not {with_bin(outcome, edges) for outcome in world.outcomes(h or 0, s, x)} <= allowed:
                return False
    return True


def rarest_share(world, demonstrators, episodes, step_indexed=False, edges=None):
    """The least share that a possible outcome of a tried action has of all visits to its state, sources pooled."""
    visited, followed, tried = defaultdict(float), defaultdict(float), set()
    for name, demonstrator in demonstrators.items():
        for (h, s, x, *outcome), mass in rows(world, demonstrator).items():
            where = (h if step_indexed else None, s)
            tried.add((*where, x))
            visited[where] += mass * episodes[name]
            followed[where, with_bin(outcome, edges)] += mass * episodes[name]
    return min(
        followed[(h, s), with_bin(outcome, edges)] / visited[h, s]
        for h, s, x in tried
        for outcome in world.outcomes(h or 0, s, x)
    )


# Random worlds ---------------------------------------------------------------------------------------------------

FEATURES = (
    "hidden states",
    "inadmissible actions",
    "continuous rewards",
    "mixed signs",
    "discount",
    "stationary",
    "time-varying",
    "unknown outcomes",
    "ends without a state",
    "much is proven",
)


def random_features(rng):
    """Some features, those that exclude each other aside."""
    found = {name for name in FEATURES if rng.random() < (0.2 if name == "stationary" else 0.4)}  # which is slow
    if "much is proven" in found:  # every state is visited, and every action taken by somebody nearly always
        found -= {"time-varying", "unknown outcomes"}
    if "stationary" in found:
        found -= {"time-varying"}
    return found


def random_chances(rng, *shape, zeros=0.3):
    """Probabilities over the last axis, some of them zero."""
    weights = rng.exponential(size=shape) * (rng.random(shape) >= zeros)
    empty = weights.sum(-1) == 0
    weights[empty, rng.integers(shape[-1])] = 1.0
    return weights / weights.sum(-1, keepdims=True)


def random_world(rng, features):
    """A world of a few states. State 0 is alive; hidden states come before the last, which is terminal or alive."""
    n_states, n_actions = rng.integers(2, 6), rng.integers(1, 4)
    n_noises = rng.integers(4, 9) if "continuous rewards" in features else rng.integers(1, 5)
    horizon = int(rng.integers(1, 6) if rng.random() < 0.7 else rng.integers(8, 15))
    steps = horizon if "time-varying" in features else 1
    shape = (steps, n_states, n_actions, n_noises)
    hidden = np.zeros(n_states, dtype=bool)
    if "hidden states" in features:
        hidden[1:] = rng.random(n_states - 1) < 0.4
        hidden[rng.integers(1, n_states)] = True
    terminal = rng.random(n_states) < 0.3
    terminal[0] = False
    terminal &= ~(hidden & (rng.random(n_states) < 0.7))  # most hidden states go on
    next_state = rng.integers(0, n_states, size=shape)
    if rng.random() < 0.5:  # rare successors: one where most noise leads
        next_state[..., : n_noises // 2] = rng.integers(0, n_states, size=(*shape[:-1], 1))
    if "much is proven" in features or rng.random() < 0.3:  # hidden states follow in the last noise only
        next_state[..., :-1] = rng.choice(np.flatnonzero(~hidden), size=(*shape[:-1], n_noises - 1))
    discount, stationary = 1.0, "stationary" in features
    if "discount" in features or (stationary and rng.random() < 0.9):  # without, few endless bounds are finite
        discount = float(rng.choice([0.5, 0.9, 0.95]))
    noise = random_chances(rng, steps, n_states, n_noises)
    ends = terminal[next_state]
    if "ends without a state" in features:
        cut = rng.random(shape) < 0.2
        next_state, ends = np.where(cut, NOWHERE, next_state), ends | cut
    if stationary and discount == 1:  # without a discount an endless episode needs a chance of an end in every step
        next_state[..., -1], ends[..., -1] = NOWHERE, True
        noise = 0.75 * noise
        noise[..., -1] += 0.25
    tenths = rng.integers(-10, 11, size=shape) / 10  # not exact in binary
    reward = rng.normal(size=shape) if "continuous rewards" in features else tenths
    if rng.random() < 0.7:  # what was avoided may be worth having, or be terrible, and may last
        reward[:, ~hidden] *= 0.2
        reward[:, hidden] += rng.choice([-1.0, 1.0])
        next_state[:, hidden] = np.where(ends[:, hidden], next_state[:, hidden], np.flatnonzero(hidden)[:, None, None])
    if "mixed signs" not in features:
        reward = np.abs(reward) * rng.choice([-1.0, 1.0])
    admissible = np.ones((n_states, n_actions), dtype=bool)
    if "inadmissible actions" in features:
        admissible = rng.random((n_states, n_actions)) < 0.6
        admissible[np.arange(n_states), rng.integers(0, n_actions, n_states)] = True
    start = random_chances(rng, n_states, zeros=0.0 if "much is proven" in features else 0.3) * ~(terminal | hidden)
    start = start / start.sum() if start.sum() > 0 else np.eye(n_states)[0]
    world = TrueWorld(
        next_state, ends, reward, noise, terminal, start, admissible, hidden, horizon, discount, stationary
    )
    return _avoidable(world, rng)


def _avoidable(world, rng):
    """Give every state and noise an admissible action that leads to no hidden state."""
    next_state, ends = world.next_state.copy(), world.ends.copy()
    for t, s, u in np.ndindex(len(world.noise), *world.noise.shape[1:]):
        choices = np.flatnonzero(world.admissible[s])
        if all(_hides(world, t, s, x, u) for x in choices):
            x = rng.choice(choices)
            next_state[t, s, x, u] = rng.choice(np.flatnonzero(~world.hidden))
            ends[t, s, x, u] = world.terminal[next_state[t, s, x, u]]
    return replace(world, next_state=next_state, ends=ends)


def _hides(world, t, s, x, u):
    after = world.next_state[t, s, x, u]
    return after != NOWHERE and world.hidden[after]


def random_demonstrators(rng, world, features):
    """One to three, by name; each with a favourite action of its own where much is to be proven."""
    n_actions, favourites = world.admissible.shape[1], "much is proven" in features
    n = n_actions if favourites else int(rng.integers(1, 4))
    return {f"d{i}": random_demonstrator(rng, world, features, i % n_actions if favourites else None) for i in range(n)}


def random_demonstrator(rng, world, features, favourite=None):
    """Somebody deterministic, blind, nearly blind, confounded or devoted, who lets no hidden state happen."""
    steps, n_states, n_noises = world.noise.shape
    n_actions = world.admissible.shape[1]
    longest = world.horizon if steps > 1 else world.horizon + 3
    length = int(rng.integers(1, longest + 1)) if rng.random() < 0.3 else world.horizon
    lead = length if steps > 1 or rng.random() < 0.3 else 1
    kind = rng.choice(["deterministic", "blind", "nearly blind", "confounded"])
    if favourite is not None:
        beta = np.zeros((lead, n_states, n_noises, n_actions))
        beta[..., favourite] = 1.0
    elif kind == "deterministic":
        beta = np.eye(n_actions)[rng.integers(0, n_actions, size=(lead, n_states, n_noises))]
    elif kind == "confounded":
        beta = random_chances(rng, lead, n_states, n_noises, n_actions)
    else:
        zeros = 0.2 if kind == "blind" else 0.0
        beta = np.repeat(random_chances(rng, lead, n_states, 1, n_actions, zeros=zeros), n_noises, axis=2)
        if kind == "nearly blind":
            beta = beta * np.exp(0.7 * rng.normal(size=beta.shape))
    allowed = np.broadcast_to(world.admissible[None, :, None, :], beta.shape).copy()
    for h, s, u, x in np.ndindex(*beta.shape):
        if any(_hides(world, t, s, x, u) for t in ([h] if steps > 1 else [0])):
            allowed[h, s, u, x] = False
    beta = np.where(allowed, beta + 1e-300, 0.0)  # where all that it wanted is excluded, anything else alike
    beta = beta / beta.sum(-1, keepdims=True)
    beta[beta < 1e-9] = 0.0
    beta = beta / beta.sum(-1, keepdims=True)
    missing = np.zeros((n_states, n_actions, n_noises))
    if "unknown outcomes" in features:
        missing = rng.choice([0.0, 0.0, 0.3, 1.0], size=missing.shape)
    return Demonstrator(beta, length, missing)


def adversarial(rng, world, demonstrators):
    """Let actions do the best or the worst in noise in which no demonstrator takes them: what bounds must allow for.

    The best of all states and rewards, or of the outcomes that follow the state in noise in which somebody acts.
    """
    shown = np.zeros(world.reward.shape, dtype=bool)
    for demonstrator in demonstrators.values():
        for h in range(demonstrator.length):
            shown[world.at(h)] |= demonstrator.decide(h).transpose(0, 2, 1) > 0
    how = rng.choice(["leave", "best", "worst", "best seen", "worst seen"], size=world.reward.shape[1:3])
    if rng.random() < 0.5:
        how[:] = rng.choice(how.ravel())
    low, high = world.reward_range
    for _ in range(2):  # what is best depends on the values, and they on what happens
        values, _q = optimum(world)
        next_state, ends, reward = world.next_state.copy(), world.ends.copy(), world.reward.copy()
        for t, s, x, u in np.argwhere(~shown & world.alive[:, None, None]):
            if how[s, x] == "leave":
                continue
            after = values if world.stationary else np.append(values[1:], 0 * values[:1], axis=0)[t]
            side = 1 if how[s, x].startswith("best") else -1
            if how[s, x].endswith("seen"):
                places = np.argwhere(shown[t, s] & (world.noise[t, s] > 0))
                choices = [world.outcome(t, s, *place) for place in places]
            else:
                alive = np.flatnonzero(world.alive).tolist()
                paid = high if side > 0 else low
                choices = [(NOWHERE, True, paid), *((state, False, paid) for state in alive)]
            worth = [r + (0.0 if ended else world.discount * after[to]) for to, ended, r in choices]
            if choices:
                chosen = choices[int(np.argmax(side * np.array(worth)))]
                next_state[t, s, x, u], ends[t, s, x, u], reward[t, s, x, u] = chosen
        world = replace(world, next_state=next_state, ends=ends, reward=reward)
    return world


def random_edges(rng, world):
    """Edges of a few bins of rewards, some of them empty."""
    low, high = world.reward_range
    n = rng.integers(1, 7)
    edges = rng.choice(world.reward.ravel(), size=n) if rng.random() < 0.5 else rng.uniform(low, high + 0.1, size=n)
    return tuple(np.unique(edges).tolist())
