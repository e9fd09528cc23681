"""What logs are worth whose states cannot be listed, before anything is fitted to them (extra `fitted`).

- `inspect_continuous`: coverage by clusters of states, contradictions between sources, causes that last.
- `ContinuousInspection`: what was found, in words and as a table.

Both tests ask whether something tells of the outcome beyond state and action: the source, or the episode's past. Each
sums products of two residuals given state and action, that of the outcome and that of what may tell of it. If nothing
does, their means are 0; and errors of the two regressions only matter by their product, so that a state that is blurred
a little in both raises no false alarm (the generalised covariance measure of Shah and Peters, 2020). Episodes are the
independent units: sums of sources are compared with those under random signs of the episodes, for several ways to deal
episodes into those that are predicted and those that predict, and only where both sources are probable. Errors last as
long as states do, so that sums of the past are compared with those of episodes that are stitched together (`_lasting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from causal_shaping._checks import check_integer, check_names, check_probability
from causal_shaping._extras import needs_extra
from causal_shaping._progress import Progress, no_progress, part_of
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.result import DataFrame, PlainResult, data_frame, text_table
from causal_shaping.data.space import Label
from causal_shaping.data.transitions import Transitions
from causal_shaping.diagnose._clusters import LEAST_EPISODES, ROUNDING, clusters_of, few_coordinates, holm
from causal_shaping.diagnose._lasting import Lasting, Steps, correlations, find_lasting, parts_of
from causal_shaping.diagnose._predict import Predictor
from causal_shaping.diagnose.contradictions import LEVEL, OTHER_WORLD
from causal_shaping.diagnose.persistence import MEANING, NO_PROOF
from causal_shaping.logs.counting import Item
from causal_shaping.logs.opening import open_logs
from causal_shaping.logs.transitions import read_transitions, transitions_of

MOST_ROWS = 10_000
"""So many rows of a source are tested: whole episodes, chosen at random."""

FOLDS = 3
"""Parts of the episodes whose outcomes are predicted from the others, where sources are compared."""

SPLITS = 5
"""Times that episodes are dealt into parts anew. Twice the median of the p-values is one itself, and less a matter of
luck (Meinshausen, Meier and Buehlmann, 2009)."""

FEW_CLUSTERS = 8
"""Clusters of states in which sources are compared. With many, small errors of the predictions add up."""

LEAST_PROBABLE = 0.1
"""Rows where a source is less probable than this, given state and action, do not compare it with the other."""

FLIPS = 999
"""Random signs of episodes that sums are compared with."""


@dataclass(frozen=True)
class ClusterCoverage:
    """What the sources did in one cluster of states.

    Attributes:
        centre: the mean observation; empty for images.
        rows: by source.
        taken: rows by source and action.
    """

    centre: tuple[float, ...]
    rows: Mapping[str, int]
    taken: Mapping[str, Mapping[Label, int]]

    def never_taken(self) -> list[Label]:
        """Return the actions that no source took there."""
        actions = next(iter(self.taken.values()))
        return [action for action in actions if not any(held[action] for held in self.taken.values())]


@dataclass(frozen=True)
class SourcePair:
    """Whether two sources show the same outcomes after the same action in the same state.

    Attributes:
        first: a source.
        second: another one.
        p_value: that of equal outcomes, corrected for all pairs; None with too few episodes in which both sources are
            probable, given state and action.
        correlation: that of source and outcome beyond state and action on the whole, the strongest of all parts.
        where: the centre of the cluster of states in which that is clearest; empty for images.
    """

    first: str
    second: str
    p_value: float | None
    correlation: float
    where: tuple[float, ...]


@dataclass(frozen=True)
class SourcePersistence:
    """Whether the past of an episode tells of its outcomes, given state, action and step.

    Attributes:
        source: its name.
        episodes: episodes with a past that were looked at.
        p_value: that of a past which tells nothing, corrected for all sources; None with too few episodes.
        correlation: that of outcomes with what came before, the strongest of all parts.
    """

    source: str
    episodes: int
    p_value: float | None
    correlation: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ContinuousInspection(PlainResult):
    """What logs are worth whose states cannot be listed; made by `inspect_continuous`.

    Attributes:
        columns: the names of the coordinates.
        actions: the labels of the actions.
        episodes: by source.
        rows: by source.
        unknown: rows of unknown outcome by source: what followed them is not logged.
        clusters: what the sources did in each cluster of states, on the rows that were looked at.
        pairs: comparisons of sources.
        persistence: by source.
        level: the nominal chance of any false contradiction, and that of a false alarm about the past.
    """

    columns: tuple[str, ...]
    actions: tuple[Label, ...]
    episodes: Mapping[str, int]
    rows: Mapping[str, int]
    unknown: Mapping[str, int]
    clusters: tuple[ClusterCoverage, ...]
    pairs: tuple[SourcePair, ...]
    persistence: tuple[SourcePersistence, ...]
    level: float

    def contradictions(self) -> tuple[SourcePair, ...]:
        """Return the pairs of sources that show different outcomes after the same action in the same state."""
        return tuple(pair for pair in self.pairs if pair.p_value is not None and pair.p_value <= self.level)

    def lasting(self) -> tuple[SourcePersistence, ...]:
        """Return the sources in which the past of an episode tells of its outcomes."""
        return tuple(one for one in self.persistence if one.p_value is not None and one.p_value <= self.level)

    def findings(self) -> list[str]:
        """Return what matters most, in sentences."""
        return [self._covered(), *self._untold(), *self._in_words_contradictions(), self._in_words_persistence()]

    def _covered(self) -> str:
        never = [cluster for cluster in self.clusters if cluster.never_taken()]
        if not never:
            return f"In all {len(self.clusters)} clusters of states some source took each action."
        most = max(never, key=lambda cluster: sum(cluster.rows.values()))
        names = ", ".join(map(str, most.never_taken()))
        return (
            f"In {len(never)} of {len(self.clusters)} clusters of states nobody took some action: {names}"
            f"{self._around(most.centre)}, for one. Nothing is known of it there."
        )

    def _untold(self) -> list[str]:
        told = [f"{n:,} of {name}" for name, n in self.unknown.items() if n]
        return [f"Rows of unknown outcome prove nothing: {', '.join(told)}."] if told else []

    def _in_words_contradictions(self) -> list[str]:
        tested = [pair for pair in self.pairs if pair.p_value is not None]
        untested = [f"{pair.first} and {pair.second}" for pair in self.pairs if pair.p_value is None]
        silent = [f"Too little to tell whether these contradict each other: {', '.join(untested)}."] if untested else []
        if not tested:
            return silent or ["No two sources could be compared."]
        found = self.contradictions()
        if not found:
            return [f"No contradictions in {len(tested)} comparisons of sources. {NO_PROOF}", *silent]
        return [
            f"{pair.first} and {pair.second} show different outcomes after the same action in the same state "
            f"(p {_p_text(pair.p_value)}){self._around(pair.where, ', most clearly')}. At least one of them is "
            f"confounded; or {OTHER_WORLD}."
            for pair in found
        ] + silent

    def _in_words_persistence(self) -> str:
        tested = [one for one in self.persistence if one.p_value is not None]
        if not tested:
            return "Whether a hidden cause lasts over the episode could not be tested: too few episodes have a past."
        found = self.lasting()
        if not found:
            return f"The past of an episode tells nothing of its outcomes, given state, action and step. {NO_PROOF}"
        names = ", ".join(f"{one.source} (p {_p_text(one.p_value)})" for one in found)
        return f"The past of an episode tells of its outcomes, given state, action and step, in {names}. {MEANING}"

    def _around(self, centre: tuple[float, ...], lead: str = "") -> str:
        parts = (f"{name} = {value:.3g}" for name, value in zip(self.columns, centre, strict=False))
        return f"{lead} around {', '.join(parts)}" if centre else ""

    def summary(self) -> str:
        """Return a table with a row per source, and the findings."""
        lines = [
            [name, f"{self.episodes[name]:,}", f"{n:,}", f"{self.unknown[name]:,}", f"{self._visited(name)}"]
            for name, n in self.rows.items()
        ]
        heads = ("source", "episodes", "steps", "unknown", f"clusters of {len(self.clusters)}")
        return "\n".join([text_table(heads, lines, "Episodes"), "", *(f"- {one}" for one in self.findings())])

    def _visited(self, source: str) -> int:
        return sum(cluster.rows[source] > 0 for cluster in self.clusters)

    def to_pandas(self) -> DataFrame:
        """Return a row per source and cluster of states: its centre, rows, and rows of each action."""
        return data_frame(
            [
                {"cluster": number, "source": name}
                | dict(zip(self.columns, cluster.centre, strict=False))
                | {"rows": cluster.rows[name]}
                | {f"action_{action}": n for action, n in cluster.taken[name].items()}
                for number, cluster in enumerate(self.clusters)
                for name in cluster.rows
            ]
        )

    def as_plain(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return asdict(self) | {"findings": self.findings()}

    def __repr__(self) -> str:
        return (
            f"ContinuousInspection({', '.join(self.rows)}: {len(self.clusters)} clusters of states, "
            f"contradictions between {len(self.contradictions())} of {len(self.pairs)} pairs)"
        )


def _p_text(p_value: float | None) -> str:
    return "< 0.0001" if p_value is not None and p_value < 1e-4 else f"= {p_value:.2g}"


def inspect_continuous(
    logs: Item | Iterable[Item] | Transitions,
    *,
    level: float = LEVEL,
    seed: int = 0,
    progress: Progress = no_progress,
    **columns: Any,
) -> ContinuousInspection:
    """Return what logs are worth whose states are vectors of real numbers, or images (extra `fitted`).

    - Coverage: clusters of states, by k-means; what each source did in them, and which actions nobody took.
    - Contradictions: unconfounded sources of one world show the same outcomes after an action in a state. For a pair of
      sources, the source and the outcome (reward, change of state, end) are predicted from state and action; what is
      left of the one may not go along with what is left of the other, for any action in any of 8 clusters of states,
      where both sources are probable. P-values are corrected for the number of pairs (Holm).
    - Persistence: if hidden causes are drawn afresh each step, outcomes given state, action and step do not depend on
      what happened before in the episode. What is left of an outcome may not go along with the mean of what was left of
      earlier ones, more than in episodes that are stitched together from rows of several ones. Corrected for the number
      of sources. No rejection proves nothing; a state that itself shows the cause hides it from this test.

    The tests are approximate. At a level of 5%, in logs of 100 episodes of about 20 steps, they alarmed in 2 of 120
    clean pairs of sources, and about the past in 26 of 480 clean logs of 8 kinds; but in 8 of 60 of one of them, a
    linear system of 6 coordinates, which is more than the level says. They found each of 20 pairs in which one source
    saw a hidden push or cause, and none of 5 in the windy field, where what is seen matters in few states. A cause
    that lasts is mostly missed there, too. `make calibrate` measures these rates.

    Args:
        logs: whatever `count` takes: files, tables, data frames, Minari data sets, `Logs`; one or several. At most
            10,000 rows of a source are looked at, whole episodes at random.
        level: the nominal chance of any false contradiction, and that of a false alarm about the past.
        seed: of the sample, the clusters and the forests.
        progress: called with how much is done, of how much, and what is being worked on.
        columns: what the logs call their columns, `state=["x", "y"]`, `action=`, ...: see `read_transitions`.

    Examples:
        >>> import causal_shaping as cs
        >>> world = cs.load_world("windy-field")
        >>> logs = [world.collect(name, 2000) for name in ("bad", "random")]
        >>> cs.inspect_continuous(logs, state=list(world.columns))
        ContinuousInspection(bad, random: 50 clusters of states, contradictions between 1 of 1 pairs)
    """
    check_probability("level", level, example="0.05")
    check_integer("seed", seed)
    check_names(columns, "inspect_continuous", inspect_continuous, read_transitions, open_logs)
    rows = transitions_of(logs, columns, part_of(progress, 0.0, 0.2))
    with needs_extra("Tests of logs whose states cannot be listed", "fitted"):
        from threadpoolctl import threadpool_limits
    with threadpool_limits(1):  # matrices are small: threads would wait for each other
        sample, compared, persistent = _tested(rows, seed, part_of(progress, 0.2, 1.0))
    pairs = combinations(range(len(rows.sources)), 2)
    found = ContinuousInspection(
        columns=rows.columns,
        actions=rows.actions,
        episodes={name: len(np.unique(rows.episode[rows.rows_of(name)])) for name in rows.sources},
        rows={name: len(rows.state[rows.rows_of(name)]) for name in rows.sources},
        unknown={name: int((~rows.outcome_known[rows.rows_of(name)]).sum()) for name in rows.sources},
        clusters=sample.coverage(),
        pairs=tuple(
            SourcePair(rows.sources[i], rows.sources[j], _known(p), one[1], one[2])
            for (i, j), one, p in zip(pairs, compared, holm([one[0] for one in compared]), strict=True)
        ),
        persistence=tuple(
            SourcePersistence(name, one.episodes, _known(p), one.correlation)
            for name, one, p in zip(rows.sources, persistent, holm([one.p_value for one in persistent]), strict=True)
        ),
        level=level,
    )
    progress(1.0, 1.0, "Done")
    return found


def _tested(
    rows: Transitions, seed: int, progress: Progress
) -> tuple[_Sample, list[tuple[float, float, tuple[float, ...]]], list[Lasting]]:
    """Return a sample of logs, and what was found for each pair of sources, and for each source."""
    sample, pairs = _Sample.of(rows, seed), list(combinations(range(len(rows.sources)), 2))
    total, compared, persistent = len(pairs) + len(rows.sources), [], []
    for done, (i, j) in enumerate(pairs):
        progress(done, total, f"Comparing {rows.sources[i]} with {rows.sources[j]}")
        compared.append(_compare(sample, i, j, seed))
    for i, name in enumerate(rows.sources):
        progress(len(pairs) + i, total, f"Testing whether hidden causes of {name} last")
        persistent.append(_persistence(sample, i, seed))
    return sample, compared, persistent


def _known(p_value: float) -> float | None:
    return None if np.isnan(p_value) else float(p_value)


@dataclass(frozen=True)
class _Sample:
    """Some whole episodes of each source, as numbers to predict from and to predict; arrays [rows, ...]."""

    rows: Transitions
    row: LongArray  # positions in the logs, rising
    known: BoolArray  # whether the outcome is known
    place: FloatArray  # standardised coordinates of the state
    after: FloatArray  # those of the state that follows; the state's own where that is not logged
    action: LongArray
    outcome: FloatArray  # reward, change of state, end; standardised
    cluster: LongArray

    @classmethod
    def of(cls, rows: Transitions, seed: int) -> _Sample:
        """Choose episodes at random."""
        rng = np.random.default_rng([seed, 0])
        chosen = np.zeros(rows.episodes, dtype=bool)
        for name in rows.sources:
            episodes, sizes = np.unique(rows.episode[rows.rows_of(name)], return_counts=True)
            order = rng.permutation(len(episodes))
            chosen[episodes[order[np.cumsum(sizes[order]) <= MOST_ROWS]]] = True
        row = np.flatnonzero(chosen[rows.episode])
        state, after = rows.state[row], rows.next_state[row]
        after = np.where(after < 0, state, after)
        seen = few_coordinates(np.concatenate([rows.observations[state], rows.observations[after]]), seed)
        place, followed = seen[: len(row)], seen[len(row) :]
        outcome = np.column_stack([rows.reward[row], followed - place, rows.terminated[row]])
        spread = outcome.std(axis=0)
        return cls(
            rows=rows,
            row=row,
            known=rows.outcome_known[row],
            place=place,
            after=followed,
            action=rows.action[row].astype(np.int64),
            outcome=(outcome - outcome.mean(axis=0)) / np.where(spread > 0, spread, 1.0),
            cluster=clusters_of(rows.observations[state], seed),
        )

    def centre(self, which: BoolArray) -> tuple[float, ...]:
        """Return the mean observation of some rows; nothing for images."""
        if len(self.rows.shape) > 1:
            return ()
        seen = np.asarray(self.rows.observations[self.rows.state[self.row[which]]], dtype=np.float64)
        return tuple(seen.mean(axis=0).tolist())

    def coverage(self) -> tuple[ClusterCoverage, ...]:
        """Return what the sources did in each cluster."""
        names, actions = self.rows.sources, self.rows.actions
        shape = (int(self.cluster.max()) + 1, len(names), len(actions))
        taken = np.zeros(shape, dtype=np.int64)
        np.add.at(taken, (self.cluster, self.rows.source[self.row], self.rows.action[self.row]), 1)
        return tuple(
            ClusterCoverage(
                centre=self.centre(self.cluster == c),
                rows={name: int(taken[c, i].sum()) for i, name in enumerate(names)},
                taken={name: dict(zip(actions, taken[c, i].tolist(), strict=True)) for i, name in enumerate(names)},
            )
            for c in range(shape[0])
        )


def _compare(sample: _Sample, i: int, j: int, seed: int) -> tuple[float, float, tuple[float, ...]]:
    """Return the p-value of two sources with equal outcomes, the correlation of outcome and source, and where."""
    rng = np.random.default_rng([seed, 1, i, j])
    which = np.flatnonzero(sample.known & np.isin(sample.rows.source[sample.row], (i, j)))
    second = sample.rows.source[sample.row[which]] == j
    episode, action = sample.rows.episode[sample.row[which]], sample.action[which]
    if min(len(np.unique(episode[own])) for own in (second, ~second)) < 2 * LEAST_EPISODES:
        return np.nan, 0.0, ()
    state, actions = sample.place[which], len(sample.rows.actions)
    cluster = clusters_of(sample.rows.observations[sample.rows.state[sample.row[which]]], seed, FEW_CLUSTERS)
    given = _Pair(state, action, sample.outcome[which], second, episode, cluster * actions + action)
    splits = [found for found in (_split(given, actions, rng) for _ in range(SPLITS)) if found is not None]
    if len(splits) < SPLITS:
        return np.nan, 0.0, ()
    p_value, correlation, cell = sorted(splits)[SPLITS // 2]
    clearest = which[cluster == cell // actions]
    return min(1.0, 2 * p_value), correlation, sample.centre(clearest)


class _Pair(NamedTuple):
    """Rows of two sources; arrays [rows, ...]."""

    state: FloatArray
    action: LongArray
    outcome: FloatArray
    second: BoolArray  # whether the row is of the second source
    episode: LongArray
    cell: LongArray  # of cluster and action


def _split(pair: _Pair, actions: int, rng: np.random.Generator) -> tuple[float, float, int] | None:
    """Return the p-value of equal outcomes, the correlation of source and outcome, and the clearest cell.

    Episodes are dealt into parts; source and outcome of each are predicted from the others. Nothing is returned if too
    few episodes have rows in which either source is probable.
    """
    wanted = np.column_stack([pair.second, pair.outcome])
    part, expected = parts_of(pair.episode, FOLDS, rng), np.empty_like(wanted)
    for own in (part == number for number in range(FOLDS)):
        fit = Predictor(pair.state[~own], pair.action[~own], wanted[~own], actions, rng)
        expected[own] = fit(pair.state[own], pair.action[own])
    both = np.abs(expected[:, 0] - 0.5) < 0.5 - LEAST_PROBABLE
    if min(len(np.unique(pair.episode[both & own])) for own in (pair.second, ~pair.second)) < 2 * LEAST_EPISODES:
        return None
    left, cell = (wanted - expected)[both], pair.cell[both]
    sums = _by_episode(left[:, :1] * left[:, 1:], cell, pair.episode[both])
    p_value, strength = _flip_signs(sums, pair.outcome.shape[1], rng)
    clearest = int(np.unique(cell)[np.argmax(strength) // pair.outcome.shape[1]])
    return p_value, float(np.abs(correlations(left[:, :1], left[:, 1:])).max()), clearest


def _by_episode(products: FloatArray, cell: LongArray, episode: LongArray) -> csr_array:
    """Return the sums of products, [rows, numbers], by episode, and by cell and number: [episodes, cells * numbers]."""
    size = products.shape[1]
    unit, place = (np.unique(one, return_inverse=True)[1] for one in (episode, cell))
    column = place[:, None] * size + np.arange(size)
    shape = (int(unit.max()) + 1, (int(place.max()) + 1) * size)
    return coo_array((products.ravel(), (np.repeat(unit, size), column.ravel())), shape=shape).tocsr()


def _flip_signs(sums: csr_array, numbers: int, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """Return the p-value of sums whose means are 0, by random signs of the episodes; and what speaks against it.

    Each number has one scale for all its cells. With a scale of its own, a cell in which nothing rare happened would
    count most: all its residuals are small and of one sign.

    Args:
        sums: [episodes, cells * numbers]; the squares of their sums over episodes, by the number's scale, are added.
        numbers: how many there are.
        rng: what draws the signs.
    """
    squares = np.asarray(sums.multiply(sums).sum(axis=0)).reshape(-1, numbers)
    scale = np.sqrt(np.tile(squares.sum(axis=0), len(squares)))
    scale = np.where(scale > 0, scale, np.inf)
    strength = np.square(np.asarray(sums.sum(axis=0)).ravel() / scale)
    signs = rng.choice([-1.0, 1.0], size=(FLIPS, sums.shape[0]))
    flipped = np.square((sums.T @ signs.T).T / scale).sum(axis=1)
    return (1 + int((flipped >= strength.sum() * (1 - ROUNDING)).sum())) / (1 + FLIPS), strength


def _persistence(sample: _Sample, i: int, seed: int) -> Lasting:
    """Return whether the past of episodes of a source tells of their outcomes."""
    which = np.flatnonzero(sample.known & (sample.rows.source[sample.row] == i))
    row = sample.row[which]
    steps = Steps(
        state=sample.place[which],
        after=sample.after[which],
        action=sample.action[which],
        step=sample.rows.step[row].astype(np.int64),
        episode=sample.rows.episode[row],
        ended=sample.rows.terminated[row],
        outcome=sample.outcome[which],
    )
    return find_lasting(steps, len(sample.rows.actions), np.random.default_rng([seed, 2, i]))
