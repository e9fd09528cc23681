"""What logs prove and what they suggest of do(x), as arrays for the sampler.

For each state and action

    p(. | s, do x) = L + F q,      L = max_i L_i (proven),   F = 1 - sum of L (free),   q over the possible outcomes.

A *component* is a source, or the pool, the mean of all. Where it is trusted, q ~ Dirichlet(B r): r is the residual, the
positive part of its shares less L, and B says how many visits it is worth; one visit of them is spread flat. Where
nobody is trusted all of q is flat, worth one visit. Sources of confounding 1 count as the agent's own data.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from causal_shaping.beliefs._evidence import Evidence
from causal_shaping.beliefs._kernels import BLUNT, STICKS, TINY, Drawn, Guess, Hypotheses, Memory, Shape, observe
from causal_shaping.bounds.outcomes import reward_keys
from causal_shaping.bounds.settings import DEFAULT_RAREST, OBSERVED, Settings
from causal_shaping.bounds.support import anything_may_follow, terminal_states
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray, groups
from causal_shaping.data.counts import MAX_REWARDS, Counts
from causal_shaping.data.space import Space

MOST_STRENGTH = 1000.0
"""A component is worth at most so many visits of its own."""

POOL_FLAT, MOST_FLAT = 0.1, 4.0
"""The share of the pool's guess that is flat, and the most visits that this part is worth."""

REFUTED = 1e-4
"""A component is refuted in a cell if its share lies below what others prove, at this level over all outcomes."""

ENOUGH_VISITS = math.log(0.05) / math.log1p(-DEFAULT_RAREST)
"""Visits of a state that have shown, with a probability of 95%, an outcome that follows in 1% of them: 298.

After fewer, an outcome that nobody has seen is possible, too: otherwise an agent would never look beyond a few logs."""

UPPER_ERRORS = 4.0
"""Masses of sources of finite Gamma are at most what their shares say, plus so many standard errors."""

POPULATION = 1e6
"""Population masses count as so many visits."""

MOST_SHARPNESS = 1e9
"""The largest concentration of a likelihood, where nothing is uncertain."""


def empty_guess(cells: int, places: int) -> Guess:
    """Return what is said without logs: nothing."""
    none = np.zeros((0, 0))
    return Guess(
        n=none,
        taken=np.zeros((cells, 0)),
        visits=np.zeros((places, 0)),
        gamma=np.zeros(0),
        fixed=False,
        lower=np.zeros(0),
        free=np.ones(cells),
        limited=np.zeros(cells, dtype=np.bool_),
        upper=np.zeros(0),
        rest=np.ones(cells),
        weight=none,
        flat=np.zeros((cells, 0)),
        strength=np.zeros((cells, 0)),
        sharpness=np.ones((cells, 1)),
        blunt=np.zeros((cells, 0)),
        hypotheses=hypotheses(0, 1),
        most=0,
    )


class Limits(NamedTuple):
    """Limits of masses; the upper ones count in cells that are `limited`."""

    lower: FloatArray  # [log entries]
    limited: BoolArray  # [cells]
    upper: FloatArray  # [log entries]
    rest: FloatArray  # [cells], of all outcomes that are no entries, together


class Model:
    """Logs, read by checked settings, as arrays; `memory()` gives what an agent starts from."""

    def __init__(self, space: Space, counts: Counts | None, settings: Settings) -> None:
        self.space, self.settings = space, settings
        steps = settings.horizon if counts is not None and counts.step_indexed else 1
        states, actions = len(space.states), len(space.actions)
        by_action = counts is not None and settings.support == "observed-action"
        self.shape = Shape(steps, states, actions, by_action, settings.reward_bound, settings.discount)
        self.places, self.cells = steps * states, steps * states * actions
        self.terminal = space.is_terminal.copy()
        self.edges = np.zeros(0)
        self.level = np.zeros(0)
        self.can_end = bool(space.is_terminal.any())
        self.guess = empty_guess(self.cells, self.places)
        self.first_entry = np.zeros(self.cells + 1, dtype=np.int64)
        self.node = np.zeros(0, dtype=np.int64)
        self.node_first = np.zeros((self.cells if by_action else self.places) + 1, dtype=np.int64)
        self.node_after, self.node_level = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
        self.node_paid, self.node_times = np.zeros(0), np.zeros(0)
        self.unknown = np.ones(self.cells, dtype=np.bool_)
        self.met = np.zeros(states, dtype=np.bool_)
        self.refuted = np.zeros((self.cells, 0), dtype=np.bool_)
        self.trials: list[tuple[int, int, float, float]] = []
        self.sources: tuple[str, ...] = ()
        self.agreement = math.inf
        """How much sources agree on what follows an action, as a concentration; inf if there is only one."""
        if counts is not None:
            self._read(counts)

    def _read(self, counts: Counts) -> None:
        """Turn counts into entries, nodes, masses and guesses."""
        shape, settings = self.shape, self.settings
        evidence = Evidence(counts, settings)
        counts, bins = evidence.counts, evidence.counts.space.reward_bins
        self.terminal |= terminal_states(counts)
        self.edges = np.zeros(0) if bins is None else np.array(bins.edges)
        self.level = evidence.keys if bins is None else np.zeros(0)
        self.can_end |= bool(counts.terminated.any())
        times = counts.n * (POPULATION if counts.population else 1.0)
        paid = counts.reward_sum * (POPULATION if counts.population else 1.0)
        step = 0 if counts.step is None else counts.step.astype(np.int64)
        place = step * shape.states + counts.state
        cell = place * shape.actions + counts.action
        after = np.where(counts.terminated, shape.states, counts.next_state).astype(np.int64)
        level = np.searchsorted(evidence.keys, reward_keys(counts)).astype(np.int64)
        gammas = np.array([settings.gamma(name) for name in counts.sources])
        trial = gammas == 1.0
        confounded = np.flatnonzero(~trial)
        self.sources = tuple(counts.sources[i] for i in confounded)
        known = counts.outcome_known
        self.met[counts.state] = True
        self.met[counts.next_state[known & ~counts.terminated]] = True

        # Nodes: what was seen to follow a place (or a cell), by any source.
        group = cell if shape.by_action else place
        order, first = groups([group[known], after[known], level[known]])
        rows = np.flatnonzero(known)[order]
        self.node_after, self.node_level = after[rows][first].astype(np.int32), level[rows][first].astype(np.int32)
        node_group = group[rows][first]
        self.node_first = np.searchsorted(node_group, np.arange(len(self.node_first)))
        weights = np.add.reduceat(times[rows], first) if len(first) else np.zeros(0)
        sums = np.add.reduceat(paid[rows], first) if len(first) else np.zeros(0)
        if bins is not None:
            paid_in, times_in = (np.bincount(level[known], part[known], len(self.edges) + 1) for part in (paid, times))
            self.level = paid_in[times_in > 0] / times_in[times_in > 0]
        if bins is None:
            self.node_paid, self.node_times = self.level[self.node_level], np.ones(len(first))
        else:
            self.node_paid, self.node_times = sums, weights
        node_of = np.empty(len(known), dtype=np.int64)
        node_of[rows] = np.cumsum(np.isin(np.arange(len(rows)), first)) - 1

        # Entries: the same by cell.
        order, first = groups([cell[known], node_of[known]])
        rows = np.flatnonzero(known)[order]
        entry_cell, entries = cell[rows][first], len(first)
        self.node = node_of[rows][first] - self.node_first[group[rows][first]]
        self.first_entry = np.searchsorted(entry_cell, np.arange(self.cells + 1))
        entry_of = np.full(len(known), -1)
        entry_of[rows] = np.cumsum(np.isin(np.arange(len(rows)), first)) - 1
        n = np.zeros((entries, len(counts.sources)))
        np.add.at(n, (entry_of[known], counts.source[known]), times[known])
        taken, visits = np.zeros((self.cells, len(gammas))), np.zeros((self.places, len(gammas)))
        np.add.at(taken, (cell, counts.source), times)
        np.add.at(visits, (place, counts.source), times)
        for e in np.flatnonzero(n[:, trial].any(axis=1)):
            node = self.node_first[entry_cell[e] if shape.by_action else entry_cell[e] // shape.actions] + self.node[e]
            reward = self.node_paid[node] / self.node_times[node]
            self.trials.append(
                (int(entry_cell[e]), int(self.node_after[node]), float(reward), float(n[e, trial].sum()))
            )
        n, taken, visits = (np.ascontiguousarray(table[:, confounded]) for table in (n, taken, visits))
        gammas = gammas[confounded]
        tried: FloatArray = np.bincount(cell, times, minlength=self.cells).astype(np.float64)
        self._allow(counts, settings, tried)
        limits = self._limits(evidence, entry_cell) if settings.confidence is not None else None
        self.guess = self._guesses(n, taken, visits, gammas, entry_cell, tried, limits)

    def _allow(self, counts: Counts, settings: Settings, tried: FloatArray) -> None:
        """Find out where an outcome that nobody has seen is possible: where the support allows anything."""
        shape, unrestricted = self.shape, anything_may_follow(counts, settings)
        for t in range(shape.steps):
            anything = unrestricted[t]
            part = slice(t * shape.states * shape.actions, (t + 1) * shape.states * shape.actions)
            self.unknown[part] = anything.ravel()
        group = np.arange(self.cells) // (1 if shape.by_action else shape.actions)
        self.unknown |= (tried == 0) | (np.diff(self.node_first)[group] == 0)  # or no outcome is known
        if settings.confidence is None and settings.support in OBSERVED:  # with confidence, the support asks for more
            visits = tried if shape.by_action else tried.reshape(-1, shape.actions).sum(axis=1).repeat(shape.actions)
            self.unknown |= visits < ENOUGH_VISITS

    def _limits(self, evidence: Evidence, entry_cell: LongArray) -> Limits:
        """Return confidence limits of the masses of the entries."""
        shape, cells = self.shape, self.cells
        found = Limits(
            np.zeros(len(entry_cell)), np.zeros(cells, dtype=np.bool_), np.ones(len(entry_cell)), np.ones(cells)
        )
        for t in range(shape.steps):
            masses = evidence.masses(t if evidence.counts.step_indexed else None)
            cell_of = masses.state.astype(np.int64) * shape.actions + masses.action + t * shape.states * shape.actions
            row_cell = np.repeat(cell_of, np.diff(masses.first))
            group = row_cell if shape.by_action else row_cell // shape.actions
            if len(masses.upper):
                found.limited[cell_of], found.rest[cell_of] = True, masses.rest
            for o in range(len(row_cell)):
                begin, end = self.node_first[group[o]], self.node_first[group[o] + 1]
                same = (self.node_after[begin:end] == masses.after[o]) & (
                    self.node_level[begin:end] == masses.reward[o]
                )
                entries = np.arange(self.first_entry[row_cell[o]], self.first_entry[row_cell[o] + 1])
                entry = entries[self.node[entries] == np.flatnonzero(same)[0]]
                found.lower[entry] += masses.lower[o]
                if len(masses.upper):
                    found.upper[entry] = masses.upper[o]
        return found

    def _guesses(
        self,
        n: FloatArray,
        taken: FloatArray,
        visits: FloatArray,
        gammas: FloatArray,
        entry_cell: LongArray,
        rows: FloatArray,
        limits: Limits | None,
    ) -> Guess:
        """Return what each component says of free mass, and how sharply its hypothesis is tested."""
        shape, cells, sources = self.shape, self.cells, n.shape[1]
        place = entry_cell // shape.actions
        group = np.arange(cells) if shape.by_action else np.arange(cells) // shape.actions
        # Where one outcome is all that is known, another may still turn up: nothing is predicted with certainty.
        k = np.maximum(np.diff(self.node_first)[group] + self.unknown, 2)
        known = np.zeros((cells, sources))
        np.add.at(known, entry_cell, n)
        # The mean of L under the posterior of each source's table, given its visits and one more that proves nothing.
        here, seen = taken[entry_cell], visits[place]
        propensity = (here + 1.0 / shape.actions) / (seen + 1.0)
        share = n / (here + 1.0)
        each = share * (propensity + (1.0 - propensity) / gammas) if sources else np.zeros((len(n), 0))
        by = each.argmax(axis=1) if sources else np.zeros(len(n), dtype=np.int64)
        lower = each.max(axis=1, initial=0.0) if limits is None else limits.lower
        proven = np.bincount(entry_cell, lower, minlength=cells)
        # Masses that add to more than 1 are scaled; some mass stays free, for outcomes that no log holds.
        allowed = 1.0 - 1.0 / (rows + 2.0)
        lower = lower * np.minimum(1.0, allowed / np.maximum(proven, TINY))[entry_cell]
        free = np.maximum(1.0 - np.bincount(entry_cell, lower, minlength=cells), 0.0)
        spread = (
            lower * (1.0 - lower) / (seen[np.arange(len(n)), by] + 2.0)
            if sources and limits is None
            else np.zeros(len(n))
        )
        uncertain: FloatArray = np.bincount(entry_cell, spread, minlength=cells).astype(np.float64)

        shares = [n[:, c] / np.maximum(known[entry_cell, c] + 1.0, 1.0) for c in range(sources)]
        strengths = [np.minimum(known[:, c] + 1.0, MOST_STRENGTH) * (known[:, c] > 0) for c in range(sources)]
        flats = [np.ones(cells) for _ in range(sources)]
        errors = [
            (share_c * (1 - share_c) + 1.0 / (known[entry_cell, c] + 1.0)) / (known[entry_cell, c] + 1.0)
            for c, share_c in enumerate(shares)
        ]
        if sources > 1:
            pooled, kappa, some = _pool(n, known, entry_cell)
            self.agreement = kappa
            shares.append(pooled)
            strengths.append(np.where(some, kappa, 0.0))
            flats.append(np.full(cells, min(max(POOL_FLAT * kappa, 1e-3), MOST_FLAT)))
            both = known.sum(axis=1)[entry_cell]
            errors.append(pooled * (1 - pooled) * (1.0 / (kappa + 1.0) + 1.0 / (both + 1.0)) + 1.0 / (both + 1.0) ** 2)
        components = len(shares)
        weight, flat = np.zeros((len(n), components)), np.ones((cells, components))
        strength, refuted = np.zeros((cells, components)), np.zeros((cells, components), dtype=np.bool_)
        sharpness, blunt = np.ones((cells, components + 1)), np.ones((cells, components))
        no_weight = np.zeros(len(n))
        for c in range(components):
            left = np.maximum(shares[c] - lower, 0.0)
            total = np.bincount(entry_cell, left, minlength=cells)
            inside = np.divide(
                total, total + flats[c] / np.maximum(strengths[c], 1.0), out=np.zeros(cells), where=total > 0
            )
            has = strengths[c] > 0
            strength[:, c] = np.where(has, flats[c] + strengths[c] * inside, 0.0)
            flat[:, c] = np.where(has, flats[c] / np.maximum(strength[:, c], 1e-12), 1.0)
            weight[:, c] = (1.0 - flat[entry_cell, c]) * np.divide(
                left, total[entry_cell], out=no_weight.copy(), where=left > 0
            )
            beyond = (lower - shares[c]) > -ndtri(REFUTED / max(len(n), 1)) * np.sqrt(errors[c] + spread)
            refuted[:, c] = np.bincount(entry_cell, beyond & has[entry_cell], minlength=cells) > 0
            sharpness[:, c], blunt[:, c] = (
                _sharpness(lower, weight[:, c], flat[:, c], free, uncertain, entry_cell, k, most)
                for most in (strength[:, c], np.minimum(strength[:, c], BLUNT))
            )
        one = np.ones(cells)
        sharpness[:, -1] = _sharpness(lower, no_weight, one, free, uncertain, entry_cell, k, one)
        self.refuted = refuted
        above = limits or _upper_limits(n, taken, visits, gammas, entry_cell, lower, shape.actions)
        return Guess(
            n=n,
            taken=taken,
            visits=visits,
            gamma=gammas,
            fixed=limits is not None,
            lower=lower,
            free=free,
            limited=above.limited,
            upper=above.upper,
            rest=above.rest,
            weight=weight,
            flat=flat,
            strength=strength,
            sharpness=sharpness,
            blunt=blunt,
            hypotheses=hypotheses(components, shape.actions),
            most=int(np.diff(self.first_entry).max(initial=0)),
        )

    def memory(self, steps: int) -> Memory:
        """Return what is known before the first step, with room for so many."""
        shape, guess = self.shape, self.guess
        groups_ = len(self.node_first) - 1
        levels = max(MAX_REWARDS, len(self.level), len(self.edges) + 1)
        most = min(steps, self.cells * (shape.states + 1) * levels) + len(self.trials)
        known, entries = len(self.node_after), len(self.node)
        pool = 4 * (most + known + min(most, groups_)) + 8
        head, tail = np.full(self.cells, -1), np.full(self.cells, -1)
        some = np.flatnonzero(np.diff(self.first_entry))
        head[some], tail[some] = self.first_entry[some], self.first_entry[some + 1] - 1
        link = np.full(entries + most, -1)
        link[:entries] = np.arange(1, entries + 1)
        link[tail[some]] = -1
        ratio = np.where(self.refuted, -np.inf, 0.0)
        held = guess.hypotheses
        evidence = np.zeros(len(held.prior))
        for h in range(1, len(evidence)):
            concerned = np.isinf(ratio[:, held.component[h]]) & (np.arange(self.cells) % shape.actions != held.aside[h])
            evidence[h] = math.log(held.doubt[h]) * concerned.sum()
        level = np.zeros(max(len(self.level), MAX_REWARDS))
        level[: len(self.level)] = self.level
        sizes = np.array([known, entries, len(self.level), int(self.can_end)])
        first, size = self.node_first[:-1].copy(), np.diff(self.node_first)
        result = Memory(
            level=level,
            edges=self.edges,
            sizes=sizes,
            met=self.met.copy(),
            group_first=first,
            group_size=size.copy(),
            group_room=size.copy(),
            node_after=_padded(self.node_after, pool),
            node_level=_padded(self.node_level, pool),
            node_paid=_padded(self.node_paid, pool),
            node_times=_padded(self.node_times, pool),
            head=head,
            tail=tail,
            link=link,
            node=_padded(self.node, len(link)),
            seen=np.zeros(len(link)),
            mass=_padded(guess.lower, len(link)),
            share=np.zeros(len(link)),
            own=np.zeros(len(link)),
            total=np.zeros(self.cells),
            unknown=self.unknown.copy(),
            ratio=ratio,
            evidence=evidence,
            against=np.zeros(3),
        )
        result.against[2] = -1.0  # the agent has not begun
        for cell, after, reward, times in self.trials:
            observe(shape, guess, result, cell, after, reward, times)
        result.against[2] = 0.0
        return result


def room_for(model: Model, memory: Memory, *, mean: bool = False) -> Drawn:
    """Return arrays that a world can be drawn into, or the mean of all worlds, which holds all that is possible."""
    cells, most = model.cells, len(memory.link) + model.cells * STICKS
    if mean:  # a new outcome is possible after all actions of its state
        groups_of = 1 if model.shape.by_action else model.shape.actions
        most = len(memory.link) + groups_of * int(memory.group_size.sum() + len(memory.link) - memory.sizes[1])
    first, after = np.zeros(cells + 1, dtype=np.int64), np.zeros(most, dtype=np.int32)
    paid, chance, reward, unknown = np.zeros(most), np.zeros(most), np.zeros(cells), np.zeros(cells)
    return Drawn(first, after, paid, chance, reward, unknown, np.zeros(cells, dtype=np.int32))


def _padded(values: Any, size: int) -> Any:
    result = np.zeros(size, dtype=values.dtype)
    result[: len(values)] = values
    return result


FULL_DOUBT = 1e-6
"""How likely a component is to mislead in a cell, if it is right everywhere, or about all actions but one.

Each of these, and being right in some cells only, has a third of the component's prior. A component that is right about
all actions but one took that one for reasons that it saw, such as a drug for the sickest alone. No evidence about the
other actions speaks against this, so that the agent does not cease to try an action that looks bad."""

CELL_DOUBTS = (0.1, 0.3)
"""The same if it is right in some cells only, all equally likely.

A smaller doubt would be refuted late, and make the agent try everything in the meantime; with a larger one alone it
would give up trying before it has found the one action that logs make look bad.
"""


def hypotheses(components: int, actions: int) -> Hypotheses:
    """Return the hypotheses and what is believed of each before anything is seen: one half that nobody is right."""
    rows = [(0.5 if components else 1.0, -1, 0.5, -1, False)]
    for c in range(components):
        third = 0.5 / components / 3.0
        rows.append((third, c, FULL_DOUBT, -1, False))
        rows += [(third / actions, c, FULL_DOUBT, x, False) for x in range(actions)]
        rows += [(third / len(CELL_DOUBTS), c, doubt, -1, True) for doubt in CELL_DOUBTS]
    prior, component, doubt, aside, blunt = zip(*rows, strict=True)
    return Hypotheses(
        np.log(prior),
        np.array(component, dtype=np.int32),
        np.array(doubt),
        np.array(aside, dtype=np.int32),
        np.array(blunt),
    )


def _upper_limits(
    n: FloatArray,
    taken: FloatArray,
    visits: FloatArray,
    gammas: FloatArray,
    entry_cell: LongArray,
    lower: FloatArray,
    actions: int,
) -> Limits:
    """Return what sources of finite Gamma allow at most, `UPPER_ERRORS` standard errors above what their shares say."""
    cells = len(taken)
    found = Limits(lower, np.zeros(cells, dtype=np.bool_), np.ones(len(n)), np.ones(cells))
    for c in np.flatnonzero(np.isfinite(gammas)):
        known = np.bincount(entry_cell, n[:, c], minlength=cells)
        here = (taken[:, c] > 0) & (known == taken[:, c])  # unknown outcomes may have been anything
        seen = visits[np.arange(cells) // actions, c]
        propensity = taken[:, c] / np.maximum(seen, 1.0)
        propensity = np.maximum(propensity - UPPER_ERRORS * np.sqrt(propensity * (1 - propensity) / (seen + 1.0)), 0.0)
        factor = propensity + (1.0 - propensity) * gammas[c]

        def most(share: FloatArray, times: FloatArray) -> FloatArray:
            error = np.sqrt((share * (1 - share) + 1.0 / (times + 1.0)) / (times + 1.0))
            return np.asarray(np.minimum(share + UPPER_ERRORS * error, 1.0))

        share = n[:, c] / np.maximum(taken[entry_cell, c], 1.0)
        upper = most(share, taken[entry_cell, c]) * factor[entry_cell]
        rest = most(np.zeros(cells), taken[:, c]) * factor
        found.limited[here] = True
        found.upper[:] = np.where(here[entry_cell], np.minimum(found.upper, upper), found.upper)
        found.rest[:] = np.where(here, np.minimum(found.rest, rest), found.rest)
    return found


def _pool(n: FloatArray, known: FloatArray, entry_cell: LongArray) -> tuple[FloatArray, float, Any]:
    """Return the mean of the sources' shares, how much they agree (a concentration), and in which cells."""
    has = known > 0
    some = has.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(has[entry_cell], n / known[entry_cell], 0.0)
    mean = share.sum(axis=1) / np.maximum(some[entry_cell], 1)
    compared = (known > 1).sum(axis=1) > 1
    usable = (known > 1)[entry_cell] & compared[entry_cell][:, None]
    members = np.maximum(usable.sum(axis=1), 2)
    centre = (share * usable).sum(axis=1) / members
    between = (np.where(usable, share - centre[:, None], 0.0) ** 2).sum(axis=1) / (members - 1)
    noise = (np.where(usable, share * (1 - share) / np.maximum(known[entry_cell] - 1, 1), 0.0)).sum(axis=1) / members
    rows = usable.any(axis=1)
    excess, whole = float((between - noise)[rows].sum()), float((centre * (1 - centre))[rows].sum())
    kappa = MOST_STRENGTH if excess <= 0 else whole / excess - 1
    pooled = mean * (known.sum(axis=1) / (known.sum(axis=1) + 1.0))[entry_cell]
    return pooled, float(np.clip(kappa, 1.0, MOST_STRENGTH)), some > 0


def _sharpness(
    lower: FloatArray,
    weight: FloatArray,
    flat: FloatArray,
    free: FloatArray,
    uncertain: FloatArray,
    entry_cell: LongArray,
    k: Any,
    strength: FloatArray,
) -> FloatArray:
    """Return the concentration of a Dirichlet that has the mean and the total variance of L + F q, for each cell."""
    cells = len(free)
    entries = np.bincount(entry_cell, minlength=cells)
    guess = weight + (flat / k)[entry_cell]
    mean = lower + free[entry_cell] * guess
    others = np.maximum(k - entries, 0)
    rest = flat / k
    spread = 1.0 - np.bincount(entry_cell, mean**2, minlength=cells) - others * (free * rest) ** 2
    inside = 1.0 - np.bincount(entry_cell, guess**2, minlength=cells) - others * rest**2
    variance = free**2 * np.maximum(inside, 0.0) / (strength + 1.0) + uncertain
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.where(variance > 0, np.maximum(spread, 0.0) / variance - 1.0, MOST_SHARPNESS)
    return np.clip(result, 1e-3, MOST_SHARPNESS)
