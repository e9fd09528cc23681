"""Sampling worlds that agree with logs and with what was seen online, and planning in them: compiled.

A *cell* is a (step, state, action), numbered (step * states + state) * actions + action, with one step if dynamics do
not change over steps; a *place* is a (step, state). Outcomes that are thought possible are the *nodes* of a group, a
place (or a cell, if what follows depends on the action). An *entry* is an outcome of a cell of which logs or the agent
have seen something. Letters as in `causal_shaping.beliefs.model`: L, F, q, B; k is the number of possible outcomes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causal_shaping._compile import INLINED, njit
from causal_shaping.bounds.outcomes import SAME_REWARD
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray

BLUNT = 4.0
"""How many visits a source is worth that is trusted in some states only: it cannot silence what the agent sees."""

NEGLIGIBLE = 1e-2
"""Free mass of a cell below this goes to one outcome instead of being broken further."""

STICKS = 64
"""The most pieces that the flat part of the free mass is broken into."""

LOG_ALARM = math.log(20.0)
"""Evidence against the logs, a likelihood ratio, beyond which they are dropped."""

ATTEMPTS = 20
"""How often proven masses that add to more than 1 are drawn again before they are scaled."""

TINY = 1e-300
"""What the logarithm of a chance of 0 is taken of."""

SAME_VALUE = 2.0**-36
"""Actions whose values differ by less than this, relative to the largest reward, are equally good."""


class Shape(NamedTuple):
    """Numbers that never change."""

    steps: int  # 1 if dynamics do not change over steps
    states: int
    actions: int
    by_action: bool  # groups are cells
    reward_max: float
    discount: float


class Hypotheses(NamedTuple):
    """Whom to trust, and where; the first says: nobody."""

    prior: FloatArray  # [hypotheses], logarithms
    component: IntArray  # [hypotheses], the component that is trusted, -1 for none
    doubt: FloatArray  # [hypotheses], how likely it is to mislead in a cell
    aside: IntArray  # [hypotheses], an action about which it says nothing anywhere, -1 for none
    blunt: BoolArray  # [hypotheses], whether it is worth at most `BLUNT` visits even where it is trusted


class Guess(NamedTuple):
    """What logs say, read-only; components are the confounded sources, then their pool if there are several."""

    n: FloatArray  # [log entries, sources], how often each source saw the outcome
    taken: FloatArray  # [cells, sources], how often it took the action
    visits: FloatArray  # [places, sources]
    gamma: FloatArray  # [sources]
    fixed: bool  # `lower` are confidence limits; otherwise masses are drawn
    lower: FloatArray  # [log entries], L: its mean, or its limit
    free: FloatArray  # [cells], F = 1 - sum of L
    limited: BoolArray  # [cells], whether a source of finite Gamma limits masses from above
    upper: FloatArray  # [log entries], U
    rest: FloatArray  # [cells], U of all other outcomes together
    weight: FloatArray  # [log entries, components], what each component says of free mass, beside its flat part
    flat: FloatArray  # [cells, components], the flat part; with the weights it adds to 1
    strength: FloatArray  # [cells, components], B, 0 where a component has no data
    sharpness: FloatArray  # [cells, components + 1], the concentration of the likelihood, that of flat comes last
    blunt: FloatArray  # [cells, components], the same for at most `BLUNT` visits
    hypotheses: Hypotheses
    most: int  # the most log entries of a cell


class Memory(NamedTuple):
    """What is known, changed in place."""

    level: FloatArray  # [levels], rewards that are distinguished; `sizes[2]` of them are there
    edges: FloatArray  # [bins - 1], the edges of bins of rewards; empty if rewards are distinguished by value
    sizes: LongArray  # [4], nodes, entries and levels in use; whether an end was seen
    met: BoolArray  # [states], which states were seen, in logs or online
    group_first: LongArray  # [groups], where its nodes begin
    group_size: LongArray  # [groups]
    group_room: LongArray  # [groups]
    node_after: IntArray  # [nodes], the next state; the number of states if the episode ends
    node_level: IntArray  # [nodes]
    node_paid: FloatArray  # [nodes], the sum of rewards
    node_times: FloatArray  # [nodes], over how many visits; the reward of a node is their ratio
    head: LongArray  # [cells], the first entry, or -1
    tail: LongArray  # [cells]
    link: LongArray  # [entries], the next entry of the cell, or -1
    node: LongArray  # [entries], a position in the group
    seen: FloatArray  # [entries], how often it happened under do(x)
    mass: FloatArray  # [entries], L as drawn last
    share: FloatArray  # [entries], q as drawn last
    own: FloatArray  # [entries], how often the agent saw it; `seen` counts sources of confounding 1, too
    total: FloatArray  # [cells], how often the action was taken: the sum of `seen`
    unknown: BoolArray  # [cells], whether an outcome that nobody has seen is possible
    ratio: FloatArray  # [cells, components], log-likelihood of what happened online, relative to flat; -inf: refuted
    evidence: FloatArray  # [hypotheses], log-likelihoods, relative to flat
    against: FloatArray  # [3], log evidence against the logs; the agent's steps when they were dropped, 0 if not; steps


class Drawn(NamedTuple):
    """A sampled world, written in place: p(outcome), the mean reward, and the chance of an unknown outcome."""

    first: LongArray  # [cells + 1], where its transitions begin
    after: IntArray  # [transitions], the next state; the number of states for an end
    paid: FloatArray  # [transitions], the reward
    chance: FloatArray  # [transitions]
    reward: FloatArray  # [cells], the mean
    unknown: FloatArray  # [cells]
    trusted: IntArray  # [cells], the component that was trusted, -1 for none


@njit(**INLINED)
def log_mix(ratio, doubt):  # type: ignore[no-untyped-def]
    """Return log((1 - doubt) exp(ratio) + doubt), without overflow."""
    if ratio > 0:
        return ratio + math.log(1.0 - doubt + doubt * math.exp(-ratio))
    return math.log((1.0 - doubt) * math.exp(ratio) + doubt)


@njit(**INLINED)
def chance_of_trust(ratio, doubt):  # type: ignore[no-untyped-def]
    """Return (1 - doubt) exp(ratio) / ((1 - doubt) exp(ratio) + doubt), and at most 1 - doubt.

    What happened in a cell takes trust away and does not add to it: an action that is shown in bad noise only has bad
    luck online too, which is predicted better than by a flat guess, and that would lock the agent out of the cell.
    """
    if ratio == -np.inf:
        return 0.0
    return 1.0 / (1.0 + doubt / (1.0 - doubt) * math.exp(-min(ratio, 0.0)))


@njit(**INLINED)
def find_level(memory, reward):  # type: ignore[no-untyped-def]
    """Return the number of a reward: its bin; or the value that it equals up to rounding; or the nearest if many."""
    level, edges, sizes = memory.level, memory.edges, memory.sizes
    if len(edges):
        place = 0
        while place < len(edges) and edges[place] <= reward:
            place += 1
        return place
    best, distance, largest = -1, np.inf, abs(reward)
    for i in range(sizes[2]):
        largest = max(largest, abs(level[i]))
        if abs(level[i] - reward) < distance:
            best, distance = i, abs(level[i] - reward)
    if best >= 0 and (distance <= SAME_REWARD * largest or sizes[2] == len(level)):
        return best
    level[sizes[2]] = reward
    sizes[2] += 1
    return sizes[2] - 1


@njit(**INLINED)
def find_node(shape, memory, cell, after, reward):  # type: ignore[no-untyped-def]
    """Return the position of an outcome in its group, added if it is new; and whether it was."""
    group = cell if shape.by_action else cell // shape.actions
    level = find_level(memory, reward)
    after_of, level_of, paid, times = memory.node_after, memory.node_level, memory.node_paid, memory.node_times
    first, size = memory.group_first[group], memory.group_size[group]
    for i in range(size):
        if after_of[first + i] == after and level_of[first + i] == level:
            return i, False
    if size == memory.group_room[group]:  # move the group to where there is twice the room
        room, start = max(4, 2 * size), memory.sizes[0]
        for i in range(size):
            after_of[start + i], level_of[start + i] = after_of[first + i], level_of[first + i]
            paid[start + i], times[start + i] = paid[first + i], times[first + i]
        memory.group_first[group], memory.group_room[group] = start, room
        memory.sizes[0] += room
        first = start
    memory.group_size[group] += 1
    after_of[first + size], level_of[first + size] = after, level
    paid[first + size], times[first + size] = 0.0, 0.0
    return size, True


@njit(**INLINED)
def find_entry(memory, cell, node):  # type: ignore[no-untyped-def]
    """Return the entry of a node in a cell, added if it is new."""
    entry = memory.head[cell]
    while entry >= 0:
        if memory.node[entry] == node:
            return entry
        entry = memory.link[entry]
    entry = memory.sizes[1]
    memory.sizes[1] += 1
    memory.link[entry], memory.node[entry], memory.seen[entry] = -1, node, 0.0
    memory.mass[entry], memory.share[entry] = 0.0, 0.0
    if memory.head[cell] < 0:
        memory.head[cell] = entry
    else:
        memory.link[memory.tail[cell]] = entry
    memory.tail[cell] = entry
    return entry


@njit(**INLINED)
def observe(shape, guess, memory, cell, after, reward, times):  # type: ignore[no-untyped-def]
    """Learn that an action led to an outcome, so many times, and how well each hypothesis had predicted that."""
    group = cell if shape.by_action else cell // shape.actions
    node, new = find_node(shape, memory, cell, after, reward)
    first = memory.group_first[group]
    if len(memory.edges) or memory.sizes[2] == len(memory.level):  # one level may stand for several rewards
        memory.node_paid[first + node] += times * reward
        memory.node_times[first + node] += times
    elif new:
        memory.node_paid[first + node], memory.node_times[first + node] = (
            memory.level[memory.node_level[first + node]],
            1.0,
        )
    memory.met[cell // shape.actions % shape.states] = True
    if after == shape.states:
        memory.sizes[3] = 1
    else:
        memory.met[after] = True
    entry = find_entry(memory, cell, node)
    logged, acting = memory.against[1] == 0.0, memory.against[2] >= 0.0  # the agent acts; before, trials are read
    k, dull = possible(memory, cell, group), guess.sharpness[cell, guess.strength.shape[1]]
    proven = guess.lower[entry] if entry < len(guess.lower) else 0.0
    flat = (memory.seen[entry] + dull * (proven + guess.free[cell] / k)) / (memory.total[cell] + dull)
    before = _log_sum(guess, memory)
    if logged and guess.strength.shape[1]:
        _judge(shape, guess, memory, cell, entry, times)
    if logged and acting and (entry < len(guess.lower) or memory.seen[entry] > 0.0):
        # What the agent's own visits alone predict, against what the mixture of all hypotheses did. An outcome that is
        # new to the cell counts for neither: few logs show few outcomes, and leaving it out can only lower the ratio.
        visits, other = 0.0, memory.head[cell]
        while other >= 0:
            visits, other = visits + memory.own[other], memory.link[other]
        alone = (memory.own[entry] + 1.0 / k) / (visits + 1.0)
        memory.against[0] += math.log(alone) - math.log(flat) - (_log_sum(guess, memory) - before)
    memory.seen[entry] += times
    memory.total[cell] += times
    if acting:
        memory.own[entry] += 1.0
        memory.against[2] += 1.0
        if logged and memory.against[0] > LOG_ALARM:
            _drop_logs(memory)


@njit(**INLINED)
def _log_sum(guess, memory):  # type: ignore[no-untyped-def]
    """Return the logarithm of what all hypotheses together have predicted, relative to flat."""
    prior, evidence = guess.hypotheses.prior, memory.evidence
    best, total = -np.inf, 0.0
    for h in range(len(prior)):
        best = max(best, prior[h] + evidence[h])
    for h in range(len(prior)):
        total += math.exp(prior[h] + evidence[h] - best)
    return best + math.log(total)


@njit(nogil=True)
def _drop_logs(memory):  # type: ignore[no-untyped-def]
    """Go on with what the agent saw itself: something that was taken for granted of the logs is wrong."""
    memory.against[1] = memory.against[2]
    memory.evidence[1:] = -np.inf
    memory.unknown[:] = True
    memory.total[:] = 0.0
    for cell in range(len(memory.head)):
        entry = memory.head[cell]
        while entry >= 0:
            memory.seen[entry], memory.mass[entry] = memory.own[entry], 0.0
            memory.total[cell] += memory.own[entry]
            entry = memory.link[entry]


@njit(**INLINED)
def possible(memory, cell, group):  # type: ignore[no-untyped-def]
    """Return the number of possible outcomes of a cell; one that nobody has seen is as likely as any that was."""
    return memory.group_size[group] + (1 if memory.unknown[cell] else 0)


@njit(**INLINED)
def _judge(shape, guess, memory, cell, entry, times):  # type: ignore[no-untyped-def]
    """Update the likelihoods of all hypotheses for an outcome that is about to be counted."""
    group = cell if shape.by_action else cell // shape.actions
    components, logged = guess.strength.shape[1], entry < len(guess.lower)
    # A new outcome was one of those that were possible, or none of them: it gets one more share of the flat part.
    k = possible(memory, cell, group)
    proven, free = guess.lower[entry] if logged else 0.0, guess.free[cell]
    prior, component, doubts, aside, _ = guess.hypotheses
    action = cell % shape.actions
    for c in range(components):
        if guess.strength[cell, c] == 0.0 or memory.ratio[cell, c] == -np.inf:
            continue
        weight = guess.weight[entry, c] if logged else 0.0
        mean = proven + free * (weight + guess.flat[cell, c] / k)
        flat = proven + free / k
        sharp, dull = guess.sharpness[cell, c], guess.sharpness[cell, components]
        seen, total = memory.seen[entry], memory.total[cell]
        if times == 1.0:
            gain = math.log((seen + sharp * mean) / (total + sharp))
            gain -= math.log((seen + dull * flat) / (total + dull))
        else:
            gain = _polya(seen + sharp * mean, total + sharp, times) - _polya(seen + dull * flat, total + dull, times)
        before = memory.ratio[cell, c]
        memory.ratio[cell, c] = before + gain
        for h in range(1, len(prior)):
            if component[h] == c and aside[h] != action:
                memory.evidence[h] += log_mix(before + gain, doubts[h]) - log_mix(before, doubts[h])


@njit(**INLINED)
def _polya(part, whole, times):  # type: ignore[no-untyped-def]
    """Return the logarithm of prod over i < times of (part + i) / (whole + i)."""
    return math.lgamma(part + times) - math.lgamma(part) - math.lgamma(whole + times) + math.lgamma(whole)


@njit(nogil=True)
def belief(guess, memory):  # type: ignore[no-untyped-def]
    """Return the probability of each hypothesis."""
    score = guess.hypotheses.prior + memory.evidence
    chance = np.exp(score - score.max())
    return chance / chance.sum()


@njit(nogil=True)
def draw(rng, shape, guess, memory, admissible, drawn):  # type: ignore[no-untyped-def]
    """Draw a world: a hypothesis, whom it trusts where, then proven masses, labels and free mass of every cell.

    Cells of actions that are not admissible are left empty: nothing is drawn for them.
    """
    chance, left, hypothesis = belief(guess, memory), rng.random(), 0
    while hypothesis < len(chance) - 1 and left >= chance[hypothesis]:
        left -= chance[hypothesis]
        hypothesis += 1
    _, component, doubts, asides, blunts = guess.hypotheses
    c, doubt, aside = component[hypothesis], doubts[hypothesis], asides[hypothesis]
    blunt, at = blunts[hypothesis], 0
    proposal, shares = np.empty(guess.most), np.empty(guess.most)
    # Unpacked once: in the loop, each look into a tuple of arrays would count references.
    states, actions, by_action, fixed, gamma = shape.states, shape.actions, shape.by_action, guess.fixed, guess.gamma
    n, taken, visits, lower = guess.n, guess.taken, guess.visits, guess.lower
    weight, flat, strength = guess.weight, guess.flat, guess.strength
    limited, upper, rest = guess.limited, guess.upper, guess.rest
    group_first, group_size, after = memory.group_first, memory.group_size, memory.node_after
    paid, times, head, link, node = memory.node_paid, memory.node_times, memory.head, memory.link, memory.node
    seen, mass, share, total, unknown = memory.seen, memory.mass, memory.share, memory.total, memory.unknown
    ratio = memory.ratio
    first, to, pays, chances, reward, unseen, trusts = drawn
    dropped, logs = memory.against[1] > 0.0, len(lower)
    level, levels, reward_max = memory.level, memory.sizes[2], shape.reward_max
    for cell in range(len(head)):
        place = cell // actions
        group = cell if by_action else place
        if not admissible[place % states, cell - place * actions]:
            trusts[cell], first[cell], reward[cell], unseen[cell] = -1, at, 0.0, 0.0
            continue
        sure = c >= 0 and rng.random() < chance_of_trust(ratio[cell, c], doubt)
        trusted = c if sure and strength[cell, c] > 0.0 and cell % actions != aside else -1
        trusts[cell], first[cell] = trusted, at
        known = group_size[group]
        if known == 0:  # nothing is known of the state
            reward[cell], unseen[cell] = _surprise(rng, level, levels, reward_max), 1.0
            continue
        if 0 <= head[cell] < logs and not dropped:
            if fixed:
                entry = head[cell]
                while 0 <= entry < logs:
                    mass[entry], entry = lower[entry], link[entry]
            else:
                _draw_proven(
                    rng, cell, head[cell], actions, n, taken, visits[place], gamma, link, seen, mass, share, total,
                    proposal, shares,
                )  # fmt: skip
        worth, part = 1.0, 1.0
        if trusted >= 0:
            worth, part = strength[cell, trusted], flat[cell, trusted]
            if blunt:
                worth = min(worth, BLUNT)
        k = known + (1 if unknown[cell] else 0)
        at, reward[cell], unseen[cell] = _draw_free(
            rng, head[cell], trusted, worth, part, k, known, group_first[group], weight, after, paid, times, link, node,
            seen, mass, share, to, chances, pays, at, limited[cell] and not dropped, upper, rest[cell],
            level, levels, reward_max,
        )  # fmt: skip
    first[len(head)] = at
    return hypothesis


@njit(**INLINED)
def _draw_proven(  # type: ignore[no-untyped-def]
    rng, cell, first, actions, n, taken, visits, gamma, link, seen, mass, share, total, proposal, shares
):
    """Draw the proven masses of a cell from what logs say, and keep them if the agent's own counts agree.

    A Metropolis step with q as it is: the proposal is the posterior given the logs, so that only the likelihood of what
    happened online decides. `proposal` and `shares` are room to work in.
    """
    size, entry = 0, first
    while 0 <= entry < len(n):
        size, entry = size + 1, link[entry]
    proven = 2.0
    for attempt in range(ATTEMPTS):
        for i in range(size):
            proposal[i] = 0.0
        for c in range(len(gamma)):
            if taken[cell, c] == 0.0:
                continue
            # Shares of the outcomes seen after x; visits with an unknown outcome, and one more, prove nothing.
            whole, known = 0.0, 0.0
            for i in range(size):
                shares[i] = rng.standard_gamma(n[first + i, c]) if n[first + i, c] > 0.0 else 0.0
                whole, known = whole + shares[i], known + n[first + i, c]
            whole += rng.standard_gamma(1.0 + taken[cell, c] - known)
            a = rng.standard_gamma(taken[cell, c] + 1.0 / actions)
            propensity = a / (a + rng.standard_gamma(visits[c] - taken[cell, c] + 1.0 - 1.0 / actions + TINY))
            factor = (propensity + (1.0 - propensity) / gamma[c]) / whole
            for i in range(size):
                proposal[i] = max(proposal[i], factor * shares[i])
        proven = 0.0
        for i in range(size):
            proven += proposal[i]
        if proven <= 1.0:
            break
        if attempt == ATTEMPTS - 1:  # some mass stays free, for outcomes that no log holds
            times = 0.0
            for c in range(len(gamma)):
                times += taken[cell, c]
            most = 1.0 - 1.0 / (times + 2.0)
            for i in range(size):
                proposal[i] *= most / proven
            proven = most
    if total[cell] > 0.0:
        old, new, before, now = 1.0, 1.0 - proven, 0.0, 0.0
        for i in range(size):
            old -= mass[first + i]
        old, entry, i = max(old, 0.0), first, 0
        while entry >= 0:
            if seen[entry] > 0.0:
                before += seen[entry] * math.log(max(mass[entry] + old * share[entry], TINY))
                chance = (proposal[i] if i < size else 0.0) + new * share[entry]
                now += seen[entry] * math.log(max(chance, TINY))
            entry, i = link[entry], i + 1
        if now < before and rng.random() >= math.exp(now - before):
            return
    for i in range(size):
        mass[first + i] = proposal[i]


@njit(**INLINED)
def _surprise(rng, level, levels, reward_max):  # type: ignore[no-untyped-def]
    """Return what an outcome pays that nobody has seen: any of the rewards that were seen, or the largest possible."""
    which = int(rng.random() * (levels + 1))
    return reward_max if which == levels else level[which]


@njit(**INLINED)
def _draw_free(  # type: ignore[no-untyped-def]
    rng, head, trusted, worth, flat, k, known, nodes, weight, after, paid, times, link, node, seen, mass, share, to,
    chances, pays, at, limited, upper, most, level, levels, reward_max,
):  # fmt: skip
    """Draw what free mass does, and write the transitions of a cell.

    The prior of q is that of the `trusted` component, worth so many visits, of which the share `flat` is spread over
    all k possible outcomes; of these, `known` were seen. If masses are `limited`, those of logs have `upper`, and all
    others `most`. Return where the next cell's transitions begin, the mean reward, and the chance of an outcome that
    nobody has seen.
    """
    begin = at
    free, entry = 1.0, head
    while entry >= 0:
        free, entry = free - mass[entry], link[entry]
    free = max(free, 0.0)
    reward, unseen, whole, entry = 0.0, 0.0, 0.0, head
    while entry >= 0:
        # Which of the agent's own visits fell into the free part: those count for q.
        own = 0.0
        if seen[entry] > 0.0:
            mine = free * share[entry]
            if mass[entry] == 0.0:
                own = seen[entry]
            elif mine > 0.0:
                own = float(rng.binomial(int(seen[entry]), mine / (mine + mass[entry])))
        if trusted >= 0 and entry < len(weight):
            own += worth * weight[entry, trusted]
        share[entry] = rng.standard_gamma(own) if own > 0.0 else 0.0
        whole, entry = whole + share[entry], link[entry]
    rest = rng.standard_gamma(worth * flat)
    if whole + rest <= 0.0:  # smaller than any number
        rest = 1.0
    whole, entry = whole + rest, head
    while entry >= 0:
        share[entry] /= whole
        entry = link[entry]
    # The flat part, broken like a stick; each piece goes to one of the k possible outcomes, all equally likely.
    left, pieces = rest / whole, worth * flat
    for stick in range(STICKS):
        piece = left
        if left * free >= NEGLIGIBLE and stick < STICKS - 1:
            cut = rng.random()
            piece *= cut if pieces == 1.0 else 1.0 - cut ** (1.0 / pieces)
        left -= piece
        place = int(rng.random() * k)
        if place >= known:
            unseen += free * piece
            reward += free * piece * _surprise(rng, level, levels, reward_max)
        else:
            entry = head
            while entry >= 0 and node[entry] != place:
                entry = link[entry]
            if entry >= 0:
                share[entry] += piece
            else:
                i = nodes + place
                to[at], chances[at], pays[at] = after[i], free * piece, paid[i] / times[i]
                reward += free * piece * pays[at]
                at += 1
        if left <= 0.0:
            break
    if limited:
        others = unseen
        for i in range(begin, at):
            others += chances[i]
        kept = _limit(head, free, others, upper, most, link, mass, share) / max(others, TINY)
        reward, unseen = reward * kept, unseen * kept
        for i in range(begin, at):
            chances[i] *= kept
    entry = head
    while entry >= 0:
        p, i = mass[entry] + free * share[entry], nodes + node[entry]
        if p > 0.0:
            to[at], chances[at], pays[at] = after[i], p, paid[i] / times[i]
            reward += p * pays[at]
            at += 1
        entry = link[entry]
    return at, reward, unseen


@njit(**INLINED)
def _limit(head, free, others, upper, most, link, mass, share):  # type: ignore[no-untyped-def]
    """Move free mass beyond the upper limits to outcomes of the logs with room, in proportion to it.

    Return what is left to all other outcomes. What the agent alone has seen has no limit.
    """
    kept, room, whole, entry = min(others, most), 0.0, 0.0, head
    beyond = others - kept
    while entry >= 0:
        if entry < len(upper):
            p, limit = mass[entry] + free * share[entry], max(upper[entry], mass[entry])
            if p > limit:
                beyond += p - limit
                share[entry] = (limit - mass[entry]) / free
            else:
                room += limit - p
            whole += mass[entry] + free * share[entry]
        entry = link[entry]
    if beyond <= 0.0 or free <= 0.0:
        return kept
    gain, entry = (min(1.0, beyond / room) if room > 0.0 else 0.0), head
    # Limits that leave no room for all mass, by sampling error alone, give way in proportion.
    spare = max(beyond - room, 0.0) / max(whole + min(room, beyond), TINY)
    while entry >= 0:
        if entry < len(upper):
            p = mass[entry] + free * share[entry]
            p += gain * max(max(upper[entry], mass[entry]) - p, 0.0)
            share[entry] = (p * (1.0 + spare) - mass[entry]) / free
        entry = link[entry]
    return kept


@njit(nogil=True)
def _write(memory, drawn, at, node, chance):  # type: ignore[no-untyped-def]
    """Write a transition and return where the next one goes."""
    drawn.after[at], drawn.chance[at] = memory.node_after[node], chance
    drawn.paid[at] = memory.node_paid[node] / memory.node_times[node]
    return at + 1


@njit(**INLINED)
def _earned(first, after, chance, reward, unknown, discount, values, elsewhere, cell):  # type: ignore[no-untyped-def]
    """Return the Q-value of a cell from values of the next step; an unknown outcome is worth `elsewhere`."""
    earned = 0.0
    # Unsigned: of a signed position each look would first ask whether it counts from the end.
    for i in range(np.uint64(first[cell]), np.uint64(first[cell + 1])):
        earned += chance[i] * values[np.uint32(after[i])]
    return reward[cell] + discount * (earned + unknown[cell] * elsewhere)


@njit(**INLINED)
def _slack(shape, memory, horizon):  # type: ignore[no-untyped-def]
    """Return the difference below which two values are equal but for rounding."""
    lowest = shape.reward_max
    if len(memory.edges):
        lowest = min(lowest, memory.edges[0])
    else:
        for i in range(memory.sizes[2]):
            lowest = min(lowest, memory.level[i])
    return SAME_VALUE * horizon * max(abs(shape.reward_max), abs(lowest))


@njit(**INLINED)
def _fill_row(first, after, chance, reward, unknown, discount, values, elsewhere, cell, slack, admissible, row):  # type: ignore[no-untyped-def]
    """Write the Q-values of a state whose cells begin at `cell`, and return the largest."""
    value = -np.inf
    for x in range(len(row)):
        row[x] = -np.inf
        if admissible[x]:
            row[x] = _earned(first, after, chance, reward, unknown, discount, values, elsewhere, cell + x)
            value = max(value, row[x])
    for x in range(len(row)):
        if row[x] >= value - slack:
            row[x] = value
    return value


@njit(nogil=True)
def plan(shape, memory, drawn, admissible, terminal, q_values):  # type: ignore[no-untyped-def]
    """Write optimal Q-values of a drawn world for each step: float64 [steps, states, actions].

    An outcome that nobody has seen leads to a state that was met so far, whichever, or to an end, if episodes can end:
    it is worth the mean of these. Of actions that are equally good but for rounding, all get the same value.
    """
    horizon, states, actions = q_values.shape
    slack = _slack(shape, memory, horizon)
    first, after, _, chance, reward, unknown, _ = drawn
    met, can_end, any_met = memory.met, memory.sizes[3] > 0, memory.met.any()
    values, elsewhere = np.zeros(states + 1), 0.0  # of the next step; an end is worth 0
    now = np.zeros(states)
    for h in range(horizon - 1, -1, -1):
        layer, total, places = h if shape.steps > 1 else 0, 0.0, 1 if can_end else 0
        for s in range(states):
            if terminal[s]:
                continue
            now[s] = _fill_row(
                first, after, chance, reward, unknown, shape.discount, values, elsewhere,
                (layer * states + s) * actions, slack, admissible[s], q_values[h, s],
            )  # fmt: skip
            if met[s] or not any_met:
                total, places = total + now[s], places + 1
        values[:states], elsewhere = now, total / places


@njit(nogil=True)
def plan_values(shape, memory, drawn, admissible, terminal, values, elsewhere):  # type: ignore[no-untyped-def]
    """Write optimal values of a drawn world for each step, from which `plan_row` tells Q-values; see `plan`.

    An agent looks at the Q-values of few states between two plans. And it needs the values of those states only that
    outcomes lead to, which are the ones that were met: `values` are float64 [horizon + 1, states + 1], 0 where the
    episode is over, and `elsewhere`, what an unknown outcome is worth, is float64 [horizon + 1].
    """
    horizon, states, actions = len(values) - 1, shape.states, shape.actions
    first, after, _, chance, reward, unknown, _ = drawn
    met, can_end, any_met, discount = memory.met, memory.sizes[3] > 0, memory.met.any(), shape.discount
    for h in range(horizon - 1, -1, -1):
        layer, total, places = h if shape.steps > 1 else 0, 0.0, 1 if can_end else 0
        following, worth = values[h + 1], elsewhere[h + 1]
        for s in range(states):
            if terminal[s] or (any_met and not met[s]):
                continue
            cell, value = (layer * states + s) * actions, -np.inf
            for x in range(actions):
                if admissible[s, x]:
                    earned = _earned(first, after, chance, reward, unknown, discount, following, worth, cell + x)
                    value = max(value, earned)
            values[h, s], total, places = value, total + value, places + 1
        elsewhere[h] = total / places


@njit(**INLINED)
def plan_row(shape, memory, drawn, admissible, values, elsewhere, h, s, row):  # type: ignore[no-untyped-def]
    """Write the Q-values of one state at one step, as `plan` does, from what `plan_values` wrote: float64 [actions]."""
    first, after, _, chance, reward, unknown, _ = drawn
    cell = ((h if shape.steps > 1 else 0) * shape.states + s) * shape.actions
    _fill_row(
        first, after, chance, reward, unknown, shape.discount, values[h + 1], elsewhere[h + 1], cell,
        _slack(shape, memory, len(values) - 1), admissible[s], row,
    )  # fmt: skip


@njit(nogil=True)
def _concentration(guess, cell, c, blunt, dropped):  # type: ignore[no-untyped-def]
    """Return how many visits the guess of a component is worth in a cell; without logs, one."""
    if dropped:
        return 1.0
    return guess.blunt[cell, c] if blunt else guess.sharpness[cell, c]


@njit(nogil=True)
def mean_world(shape, guess, memory, admissible):  # type: ignore[no-untyped-def]
    """Return the mean of the posterior as a world; see `write_mean`."""
    cells = len(memory.head)
    room = memory.sizes[1]
    for cell in range(cells):
        room += memory.group_size[cell if shape.by_action else cell // shape.actions]
    drawn = Drawn(
        np.zeros(cells + 1, dtype=np.int64),
        np.zeros(room, dtype=np.int32),
        np.zeros(room),
        np.zeros(room),
        np.zeros(cells),
        np.zeros(cells),
        np.zeros(cells, dtype=np.int32),
    )
    write_mean(shape, guess, memory, admissible, drawn)
    return drawn


@njit(nogil=True)
def write_mean(shape, guess, memory, admissible, drawn):  # type: ignore[no-untyped-def]
    """Write the mean of the posterior: what each component predicts, weighed by how far it is trusted.

    Cells of actions that are not admissible are left empty.
    """
    cells = len(memory.head)
    components, chance = guess.strength.shape[1], belief(guess, memory)
    _, component, doubts, aside, blunts = guess.hypotheses
    dropped, at = memory.against[1] > 0.0, 0
    usual = (shape.reward_max + memory.level[: memory.sizes[2]].sum()) / (memory.sizes[2] + 1)
    logs = 0 if dropped else len(guess.lower)
    trust = np.zeros((components + 1, 2))  # sharp, blunt; flat comes last
    for cell in range(cells):
        place = cell // shape.actions
        group = cell if shape.by_action else place
        drawn.first[cell], drawn.trusted[cell], drawn.reward[cell], drawn.unknown[cell] = at, -1, 0.0, 0.0
        if not admissible[place % shape.states, cell - place * shape.actions]:
            continue
        nodes, known = memory.group_first[group], memory.group_size[group]
        k = possible(memory, cell, group)
        trust[:] = 0.0
        for h in range(1, len(chance)):
            c = component[h]
            if guess.strength[cell, c] > 0.0 and aside[h] != cell % shape.actions:
                trust[c, 1 if blunts[h] else 0] += chance[h] * chance_of_trust(memory.ratio[cell, c], doubts[h])
        trust[components, 0] = max(0.0, 1.0 - trust.sum())
        total, free = memory.total[cell], 1.0 if dropped else guess.free[cell]
        reward, spread = 0.0, 0.0  # `spread`: what each possible outcome gets beside what is written for entries
        for c in range(components + 1):
            flat = 1.0 if c == components else guess.flat[cell, c]
            for b in range(2):
                if trust[c, b] > 0.0:
                    sharp = _concentration(guess, cell, c, b, dropped)
                    spread += trust[c, b] * sharp * free * flat / k / (total + sharp)
        entry = memory.head[cell]
        while entry >= 0:
            p = 0.0
            for c in range(components + 1):
                proven = guess.lower[entry] if entry < logs else 0.0
                weight = guess.weight[entry, c] if c < components and entry < logs else 0.0
                for b in range(2):
                    if trust[c, b] > 0.0:
                        sharp = _concentration(guess, cell, c, b, dropped)
                        p += trust[c, b] * (memory.seen[entry] + sharp * (proven + free * weight)) / (total + sharp)
            at = _write(memory, drawn, at, nodes + memory.node[entry], p)
            reward += p * drawn.paid[at - 1]
            entry = memory.link[entry]
        for node in range(known):
            at = _write(memory, drawn, at, nodes + node, spread)
            reward += spread * drawn.paid[at - 1]
        drawn.unknown[cell] = spread * (k - known)
        drawn.reward[cell] = reward + drawn.unknown[cell] * usual
    drawn.first[cells] = at
