"""A slow, obvious Q-UCB Shaping that remembers everything, to hold the compiled checks and the theorem against."""

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from studies.paper.theory.lemmas import learning_rates

HORIZON, EPISODES = 3, 60
ABOVE = st.lists(st.integers(0, 10), min_size=12, max_size=12).map(lambda draws: np.array(draws) / 10)


def a_ceiling(model, draws):
    """A potential above V*, at most 4 states."""
    return model.optimum(HORIZON).values + np.resize(draws, (HORIZON, len(model.terminal)))


@dataclass
class Node:
    """One step of one episode: `before` are the nodes of the earlier visits of the same (h, s, x)."""

    h: int
    s: int
    x: int
    difference: float  # Q^k - Q* of the shaped process, when the action was taken
    gap: float
    before: list
    paid: float = 0.0
    after: int = -1
    followed: float = 0.0  # V^k(s') - V*(s') of the shaped process
    child: object = None
    bonus: float = 0.0  # b_t for the t visits before


def remembered(shaped, episodes, seed, bonus, clip="zero"):
    """Every node of a run, episode by episode; b_t = bonus / sqrt(t)."""
    model, H, phi = shaped.model, shaped.horizon, shaped.potential
    best, q_best = shaped.values, shaped.best.q_values - phi[:-1, :, None]
    rng = np.random.default_rng(seed)
    states, actions = q_best.shape[1:]
    q_values, values = np.zeros((H, states, actions)), np.zeros((H + 1, states))
    visited = {}
    episodes_of_nodes = []
    for _ in range(episodes):
        s = int(np.searchsorted(np.cumsum(model.start), rng.random(), side="right"))
        nodes = []
        for h in range(H):
            x = int(np.argmax(q_values[h, s]))
            before = visited.setdefault((h, s, x), [])
            node = Node(h, s, x, q_values[h, s, x] - q_best[h, s, x], shaped.gaps[h, s, x], list(before))
            node.bonus = bonus / math.sqrt(len(before)) if before else math.inf
            u = int(np.searchsorted(np.cumsum(model.noise[s]), rng.random(), side="right"))
            after, y = int(model.next_state[s, x, u]), model.reward[s, x, u]
            on = not model.terminal[after] and h + 1 < H
            node.paid, node.after = y, after if on else -1
            node.followed = values[h + 1, after] - (best[h + 1, after] - phi[h + 1, after]) if on else 0.0
            t = len(before) + 1
            rate = (H + 1) / (H + t)
            target = y - phi[h, s] + (phi[h + 1, after] + values[h + 1, after] if on else 0.0) + bonus / math.sqrt(t)
            q_values[h, s, x] = (1 - rate) * q_values[h, s, x] + rate * target
            values[h, s] = min(0.0 if clip == "zero" else phi[h, s], q_values[h, s].max())
            if nodes:
                nodes[-1].child = node
            before.append(node)
            nodes.append(node)
            s = after
            if model.terminal[after]:
                break
        episodes_of_nodes.append(nodes)
    return episodes_of_nodes


def leftovers(shaped, episodes_of_nodes):
    """What `watch` reports, from the definitions: optimism, upper, chosen, recursion, at their worst."""
    H = shaped.horizon
    least = {"optimism": math.inf, "upper": math.inf, "chosen": math.inf, "recursion": math.inf}
    for nodes in episodes_of_nodes:
        for node in nodes:
            if node.gap > 0:
                least["chosen"] = min(least["chosen"], node.difference - node.gap)
            if not node.before:
                continue
            weights = learning_rates(H, len(node.before))[1:]
            ahead = sum(w * one.followed for w, one in zip(weights, node.before, strict=True))
            chain = sum(
                w * (one.child.difference if one.child is not None else 0.0)
                for w, one in zip(weights, node.before, strict=True)
            )
            least["optimism"] = min(least["optimism"], node.difference)
            least["upper"] = min(least["upper"], ahead + 3 * node.bonus - node.difference)
            if node.gap > 0:
                clipped = 3 * node.bonus if 3 * node.bonus >= node.gap / (2 * H) else 0.0
                least["recursion"] = min(least["recursion"], clipped + (1 + 1 / H) * chain - node.difference)
    return least


def deviations(shaped, episodes_of_nodes):
    """The widest weighted sums times sqrt(t): y + V* below its mean, above it, and y + phi above its mean."""
    H, widest = shaped.horizon, np.full(3, -math.inf)
    seen = {}
    for node in (node for nodes in episodes_of_nodes for node in nodes):
        past = seen.setdefault((node.h, node.s, node.x), [])
        past.append(node)
        weights = learning_rates(H, len(past))[1:] * math.sqrt(len(past))
        strayed = []
        for following in (shaped.values, shaped.potential):
            mean = shaped.expected(following)[node.h, node.s, node.x]
            paid = [one.paid + (following[node.h + 1, one.after] if one.after >= 0 else 0.0) for one in past]
            strayed.append(float(weights @ (np.array(paid) - mean)))
        widest = np.maximum(widest, [-strayed[0], strayed[0], strayed[1]])
    return widest


def trees(shaped, episodes_of_nodes):
    """For every node, the sum of clipped terms of the theorem's tree, by its own recursion."""
    H = shaped.horizon
    growth = 1 + 1 / H
    optimal = shaped.smallest_gap / (2 * sum(growth**j for j in range(H)))
    found = {}
    for nodes in episodes_of_nodes:  # a tree reaches back to earlier episodes only
        for node in reversed(nodes):
            if not node.before:
                found[id(node)] = node.difference
                continue
            threshold = node.gap / (2 * H) if node.gap > 0 else optimal
            term = 3 * node.bonus if 3 * node.bonus >= threshold else 0.0
            weights = learning_rates(H, len(node.before))[1:]
            below = sum(
                w * found[id(one.child)] for w, one in zip(weights, node.before, strict=True) if one.child is not None
            )
            found[id(node)] = term + (growth if node.gap > 0 else 1.0) * below
    return found
