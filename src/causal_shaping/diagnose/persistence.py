"""Does a hidden cause last over the episode? Then no bound that takes it for drawn afresh each step holds.

- `persistence_test`: whether what follows an action depends on the episode's past.
- `PersistenceTest`: what was found, in words, as a table and a figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import chdtrc

from causal_shaping._checks import check_integer, check_probability
from causal_shaping._progress import Progress, no_progress
from causal_shaping.data.arrays import FloatArray, LongArray
from causal_shaping.data.result import DataFrame, PlainResult, data_frame
from causal_shaping.diagnose._persistence import Rows, StepTest, step_tests
from causal_shaping.diagnose.small_cells import count_text
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.counting import Item, keep_origin, opened_logs
from causal_shaping.logs.queries import fetch
from causal_shaping.logs.table import LogTable, drawn

LEVEL = 0.05
"""The chance of a rejection where nothing lasts."""

EPISODES = 20_000
"""By default, so many episodes of a source are looked at."""

MOST_ROWS = 400_000
"""Fewer episodes are looked at where so many of mean length would have more rows than this, all sources together."""

PERMUTATIONS = 199

MEANING = (
    "A hidden cause may last over the episode, such as a patient's severity; then neither ceilings nor floors hold. It "
    "may also be that the state leaves out what the past tells (it is not Markov), that the world or the demonstrator "
    "changed while the log was written, that a source holds several demonstrators, or that a demonstrator remembers "
    "and sees hidden causes. What helps: the past, or what is known of the whole episode, as part of the state; "
    "sources split by demonstrator and by period."
)
"""What a rejection can mean, and what to do."""

NO_PROOF = "That proves nothing: a cause that lasts can leave too faint a trace."


@dataclass(frozen=True, eq=False, repr=False)
class PersistenceTest(PlainResult):
    """Whether what follows an action depends on the episode's past; made by `persistence_test`.

    Attributes:
        p_value: of all steps together (Fisher); 1 if there is nothing to compare.
        p_values: of each step that could be tested: float64 [tested steps].
        steps: which these are, counted from 0: int64 [tested steps].
        compared: how many rows of the step share source, state and action with a row of another outcome: int64 [tested
            steps].
        episodes: how many episodes of each source were looked at.
        total_episodes: how many there are.
        unknown: how many rows were left out because their outcome is unknown.
        level: the chance of a rejection where nothing lasts.
        permutations: of each step.
    """

    p_value: float
    p_values: FloatArray
    steps: LongArray
    compared: LongArray
    episodes: Mapping[str, int | str]
    total_episodes: Mapping[str, int | str]
    unknown: int | str
    level: float = LEVEL
    permutations: int = PERMUTATIONS

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources."""
        return tuple(self.episodes)

    @property
    def rejected(self) -> bool:
        """Whether outcomes depend on the past by more than chance, at the level."""
        return self.p_value <= self.level

    def findings(self) -> list[str]:
        """Return what was found, what it can mean and what to do: one entry of a few sentences."""
        if not len(self.steps):
            found = (
                "Whether a hidden cause lasts over the episode cannot be tested: after the first step, no two episodes "
                "of a source share step, state and action, differ in what followed, and differ in their past."
            )
        elif self.rejected:
            found = (
                "Given source, state, action and step, what follows depends on the episode's past (persistence test, "
                f"{self._p_text}). {MEANING}"
            )
        else:
            found = (
                "Given source, state, action and step, no dependence on the episode's past was found (persistence "
                f"test, {self._p_text}). {NO_PROOF}"
            )
        return [" ".join([found, *self._left_out()])]

    def _left_out(self) -> list[str]:
        sampled = [
            f"{count_text(self.episodes[source])} of {count_text(self.total_episodes[source])} episodes of {source}"
            for source in self.sources
            if self.episodes[source] != self.total_episodes[source]
        ]
        result = [f"Tested on a random sample: {', '.join(sampled)}."] if sampled else []
        if self.unknown:
            some = "Rows" if isinstance(self.unknown, str) else f"{self.unknown:,} row{'s' * (self.unknown > 1)}"
            result.append(
                f"{some} without a known outcome {'was' if some == '1 row' else 'were'} left out of the test."
            )
        return result

    @property
    def _p_text(self) -> str:
        return f"p {'<' if self.p_value < 1e-4 else '='} {max(self.p_value, 1e-4):.2g}"

    def summary(self) -> str:
        """Return what was found, and on how much."""
        used = ", ".join(f"{source} ({count_text(n)} episodes)" for source, n in self.episodes.items())
        steps = f"{len(self.steps)} step{'' if len(self.steps) == 1 else 's'} tested"
        head = f"Persistence test of {used}: {steps}, {self.permutations} permutations each, level {self.level:g}"
        return "\n".join([head, *self.findings()])

    def to_pandas(self) -> DataFrame:
        """Return a row per step that was tested; where small cells are hidden, without the rows compared."""
        return data_frame(self.as_plain()["steps"], columns=["step", "p_value", "compared"])

    def as_plain(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        steps = zip(self.steps.tolist(), self.p_values.tolist(), self.compared.tolist(), strict=True)
        return {
            "p_value": float(self.p_value),
            "rejected": self.rejected,
            "level": self.level,
            "permutations": self.permutations,
            "episodes": dict(self.episodes),
            "total_episodes": dict(self.total_episodes),
            "unknown": self.unknown,
            "steps": [{"step": step, "p_value": p_value, "compared": n} for step, p_value, n in steps],
            "findings": self.findings(),
        }

    def __repr__(self) -> str:
        verdict = "rejected" if self.rejected else "not rejected"
        return f"PersistenceTest({', '.join(self.sources)}: {self._p_text} over {len(self.steps)} steps, {verdict})"


def persistence_test(
    logs: Item | Sequence[Item],
    *,
    episodes: int = EPISODES,
    permutations: int = PERMUTATIONS,
    level: float = LEVEL,
    seed: int = 0,
    missing: str | None = None,
    skip_bad_episodes: bool = False,
    memory_limit: str | None = None,
    progress: Progress = no_progress,
) -> PersistenceTest:
    """Test whether what follows an action depends on the episode's past, given source, state, action and step.

    Every ceiling takes hidden causes for drawn afresh each step. Then the outcome of a row (next state, end, reward)
    depends on its source, state, action and step, however confounded the source is, and not on what happened before in
    its episode. A cause that lasts, such as a patient's severity or the drug that suits them, leaves a trace: earlier
    outcomes and actions tell of it, and with it of the next outcome.

    At each step after the first, the pasts of the rows of one (source, state, action) are permuted among them. What is
    compared with its permutations is how much scores of the past differ between outcomes: rewards and principal
    components of what earlier rows show beside the mean of their own (source, state, action, step), actions beside
    that of (source, state, step); and, from the third step on, how well the dependence that earlier steps showed
    predicts the outcome.

    **Why the level holds.** All scores at step h are functions of what happened before step h. Given that, and the
    actions of step h, the outcomes of a cell are independent and of one distribution if nothing lasts, so that all
    permutations within cells are equally likely, and the p-value p_h is at most t with a chance of at most t, whatever
    the past. The past tells p_1, ..., p_{h-1}. So by induction -2 ln p_1 - ... - 2 ln p_H is stochastically no larger
    than a chi-squared variable of 2 H degrees of freedom, and Fisher's combined p-value is valid, although steps share
    their episodes. Policies and worlds may change from step to step; episodes must be independent of each other.

    **What a rejection can mean**: a hidden cause that lasts; a state that leaves out what the past tells; a world or a
    demonstrator that changed while the log was written; several demonstrators in one source; a demonstrator with a
    memory that sees hidden causes. The first two, and a world that changed, break bounds. Of the others, unlimited
    confounding covers all: whoever acted, and why, a hidden cause drawn afresh knows nothing of it. No rejection proves
    nothing: where all who reach a step have the same past, as with a doctor who gives one drug until it helps, there is
    nothing to compare.

    Rows whose outcome is unknown are left out. This keeps the level if whether an outcome is known depends on the
    outcome or on the past, but not on how the two go together. Episodes cut by a time limit need no care: which
    episodes still run depends on their past.

    **What is read.** Scores of the past are fitted anew at each step, and permuted: that takes the rows of episodes, no
    sums of them do. So the engine that holds the rows draws a sample of episodes, by a hash of their names, and no more
    than its rows come back: about 400,000 at most, however large the table is.

    Args:
        logs: what `count` takes: files, data frames, tables, `Logs`, or what `open_logs` returned; each a source of
            its own.
        episodes: look at no more episodes of a source than this: a random sample of whole ones. Where they are long,
            still fewer are, so that there are about 400,000 rows at most in all.
        permutations: of each step.
        level: the chance of a rejection where nothing lasts.
        seed: of the sample and the permutations.
        missing: see `count`.
        skip_bad_episodes: see `count`.
        memory_limit: see `count`.
        progress: called after each log and each step.

    Examples:
        >>> from causal_shaping import load_world
        >>> world = load_world("lavacross-easy")  # its wind is drawn afresh each step
        >>> test = persistence_test([world.collect(name, 20_000) for name in ("bad", "random")])
        >>> test.rejected
        False
    """
    check_integer("episodes", episodes, least=2)
    check_integer("permutations", permutations, least=19)
    check_integer("seed", seed)
    check_probability("level", level, example="0.05")
    tables = opened_logs(logs, missing=missing, memory_limit=memory_limit)
    parts: dict[str, _Sample] = {}
    origins: dict[str, str] = {}
    for done, table in enumerate(tables):
        progress(done, 2 * len(tables), f"Reading episodes of {table.origin}")
        checked = check_logs(table, skip_bad_episodes=skip_bad_episodes)
        for source, sample in _samples(checked, episodes, MOST_ROWS // len(tables), seed).items():
            keep_origin(origins, source, table)
            parts[source] = sample
    rows, unknown = _rows([parts[source] for source in sorted(parts)])
    found: list[StepTest] = []
    for step, test in enumerate(step_tests(rows, permutations, seed), 1):
        share = rows.begin[min(step + 1, len(rows.begin) - 1)] / max(len(rows.step), 1)
        progress(len(tables) * (1 + share), 2 * len(tables), f"Permuting pasts at step {step}")
        if test is not None:
            found.append(test)
    p_values = np.array([test.p_value for test in found])
    return PersistenceTest(
        p_value=float(chdtrc(2 * len(found), -2 * np.log(p_values).sum())) if found else 1.0,
        p_values=p_values,
        steps=np.array([test.step for test in found], dtype=np.int64),
        compared=np.array([test.compared for test in found], dtype=np.int64),
        episodes={source: sample.used for source, sample in parts.items()},
        total_episodes={source: sample.total for source, sample in parts.items()},
        unknown=unknown,
        level=level,
        permutations=permutations,
    )


@dataclass(frozen=True)
class _Sample:
    """Episodes of one source: a table ordered by episode and step, states as one label each."""

    rows: pa.Table
    used: int
    total: int


def _samples(table: LogTable, episodes: int, most_rows: int, seed: int) -> dict[str, _Sample]:
    """Return a sample of whole episodes for each source of a log; the engine draws them."""
    key = ["episode"] if table.source is not None else ["source", "episode"]
    source, rows = key[:-1], table.rows
    every = rows.group_by(key).aggregate(length=rows.count())
    sizes = every.aggregate(by=source, episodes=every.count(), rows=every.length.sum())
    found = {row.get("source", table.source): row for row in fetch(sizes, table.origin).to_pylist()}
    totals = dict(sorted(found.items()))
    share = most_rows / len(totals)
    most = {name: min(episodes, max(2, int(share * row["episodes"] / row["rows"]))) for name, row in totals.items()}
    if any(most[name] < row["episodes"] for name, row in totals.items()):
        every = every.mutate(drawn=drawn(table, every, seed))
        place = ibis.row_number().over(ibis.window(group_by=source, order_by=["drawn", "episode"]))
        limit = every["source"].cases(*most.items()) if source else most[table.source]
        rows = rows.semi_join(every.mutate(chosen=place < limit).filter(lambda t: t.chosen), key)
    columns = [*key, "step", *table.states, "action", "reward", *table.next_states, "terminated"]
    read = fetch(rows.select(columns), table.origin).sort_by([(name, "ascending") for name in (*key, "step")])
    read = _labelled(read, table)
    return {
        name: _Sample(
            read.filter(pc.equal(read["source"], name)) if source else read,
            min(most[name], row["episodes"]),
            row["episodes"],
        )
        for name, row in totals.items()
    }


def _labelled(read: pa.Table, table: LogTable) -> pa.Table:
    """Return rows with the columns state, action and after as text."""

    def text(names: Sequence[str]) -> pa.ChunkedArray:
        parts = [read[name].cast(pa.string()) for name in names]
        return pc.binary_join_element_wise(*parts, "\x1f", null_handling="replace", null_replacement="\x00")

    followed = reduce(pc.and_, [read[name].is_valid() for name in table.next_states])
    columns = {"source": read["source"]} if "source" in read.column_names else {}
    columns |= {
        "step": read["step"].cast(pa.int64()),
        "state": text(table.states),
        "action": text(["action"]),
        "reward": read["reward"].cast(pa.float64()),
        "after": text([*table.next_states, "terminated"]),
        "known": pc.or_(read["terminated"], followed),
    }
    return pa.table(columns)


def _rows(samples: Sequence[_Sample]) -> tuple[Rows, int]:
    """Return the rows of all sources whose outcome is known, and how many others there are."""
    read = pa.concat_tables(
        [sample.rows.select(["step", "reward", "state", "action", "after", "known"]) for sample in samples]
    )
    sizes = [sample.rows.num_rows for sample in samples]
    step, known = read["step"].to_numpy(), read["known"].to_numpy()
    columns: dict[str, Any] = {"source": np.repeat(np.arange(len(samples)), sizes), "step": step}
    columns["episode"] = np.cumsum(step == 0) - 1
    columns["reward"] = read["reward"].to_numpy()
    for name in ("state", "action", "after"):
        columns[name] = read[name].combine_chunks().dictionary_encode().indices.to_numpy()
    order = np.lexsort((columns["episode"], step))
    order = order[known[order]]
    kinds = {"reward": np.float64}
    arrays = {name: column[order].astype(kinds.get(name, np.int64)) for name, column in columns.items()}
    return Rows(**arrays), int(len(step) - len(order))
