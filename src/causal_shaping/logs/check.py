"""Are the rows of a log sound? One query if they are, and one clear message for what is wrong.

Comparing consecutive rows needs the rows of each episode in order, the dominant cost. So one pass
without any order looks for doubtful episodes, and only the rows of these are put in order.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ibis
import ibis.expr.datatypes as dt

from causal_shaping.data.rows import (
    JUMP,
    Rows,
    Rule,
    jump_rules,
    label_rules,
    order_rules,
    row_rules,
)
from causal_shaping.errors import DataError, DroppedEpisodesWarning
from causal_shaping.logs.constants import MOST_DOUBTFUL
from causal_shaping.logs.numbers import fault, is_finite, list_shape
from causal_shaping.logs.queries import fetch
from causal_shaping.logs.table import Dropped, LogTable

GAP = "fill gaps first, or set skip_bad_episodes to leave such episodes out"
DIGITS = (
    "if both were rounded, leave the columns of the next state out: it is the state of the "
    "following row"
)


def check_logs(logs: LogTable, *, skip_bad_episodes: bool = False) -> LogTable:
    """Return logs whose rows are sound.

    Every row must have its episode, a step, state and action, a finite reward, and flags that are
    true or false. The steps of an episode must be 0, 1, 2, ...; nothing may follow an end; the next
    state of a row must be the state of the following one.

    Args:
        logs: what `open_logs` returned.
        skip_bad_episodes: leave out every episode that holds a bad row, with a warning, instead of
            raising.

    Raises:
        DataError: names file, row and column of the first bad row.
    """
    if logs.sound:
        return logs
    if fetch(logs.rows.select("step").limit(1), logs.origin).num_rows == 0:
        raise DataError(f"{logs.origin} has no rows.")
    doubtful = _doubtful_rows(logs)
    if doubtful is None:
        return replace(logs, sound=True)
    rows = _EngineRows(doubtful)
    rows.put_in_order(logs.episode_key, _followers(logs))
    rules = [*_rules_alone(rows, logs), *order_rules(rows, _jump_rules(rows, logs))]
    code = ibis.cases(*((rule.broken, i) for i, rule in enumerate(rules)), else_=ibis.null("int64"))
    bad = rows.columns.mutate(problem=code).filter(lambda t: t.problem.notnull())
    if skip_bad_episodes:
        return _without_bad(bad, rules, logs)
    order = [*logs.episode_key, "step"]
    if "row" in bad.columns:
        order = [name for name in ("row", "file") if name in bad.columns]
    first = bad.select(*order, "problem").order_by([*order, "problem"]).limit(1)
    for key in fetch(first, logs.origin).to_pylist():
        raise DataError(_message(key, rules[key.pop("problem")], logs))
    return replace(logs, sound=True)


class _EngineRows(Rows):
    """The rows of an engine, each beside the row before it once they are in order."""

    def __init__(self, rows: ibis.Table) -> None:
        self.columns = rows

    def put_in_order(self, episode: Sequence[str], followers: Sequence[str]) -> None:
        """Give each row what the one before it in its episode says of it."""
        rows = self.columns
        window = ibis.window(group_by=episode, order_by="step")
        before = {"step": rows.step, "ended": rows.terminated | rows.truncated}
        before |= {name: rows[name] for name in followers}
        last = {f"last_{name}": column.lag().over(window) for name, column in before.items()}
        self.columns = rows.mutate(**last)
        self.continues = self.columns.last_step.notnull()

    def before(self, column: str) -> ibis.Column:
        return self[f"last_{column}"]

    def missing(self, column: str) -> ibis.Column:
        return self[column].isnull()

    def finite(self, column: str) -> ibis.Column:
        return is_finite(self[column])

    def differ(self, one: ibis.Column, other: ibis.Column) -> ibis.Column:
        return ~one.identical_to(other)


def _doubtful_rows(logs: LogTable) -> ibis.Table | None:
    """Return the rows of the episodes that are not surely sound, None if all are.

    An episode is surely sound if no row is bad by itself, there is one first row, and the sum of
    hash(step, state) over all rows but the first is the sum of hash(step + 1, next state) over all
    rows that end nothing. Then each step has one row, and continues the one before: hashes of
    64 bits collide by chance only once in 2^64 episodes.

    An episode that ends without a flag is doubtful, unless next states are those of the following
    rows anyway.
    """
    rows, followers = logs.rows, _followers(logs)
    if rows.get_backend().name != "duckdb":  # hashes of other engines are shorter, or not there
        return rows
    # What each row adds to its episode; a bad row counts as two first rows, so that one sum looks
    # for both. To group by the hash of an episode is faster than by its columns.
    bad = ibis.or_(*(rule.broken for rule in _rules_alone(_EngineRows(rows), logs)))
    states = [rows[_state_of(name)] for name in followers]
    nexts = [rows[name].cast(rows[_state_of(name)].type()) for name in followers]
    episode = _hash(*(rows[name] for name in logs.episode_key))
    marked = rows.select(
        step=rows.step,
        episode=episode,
        first=ibis.ifelse(bad, 2, (rows.step == 0).cast("int64")).fill_null(2),
        here=_hash(rows.step, *states),
        there=_hash(rows.step + 1, *nexts),
        goes_on=~(rows.terminated | rows.truncated),
    )
    sums = {
        "firsts": marked["first"].sum(),
        "here": marked.here.sum(where=marked.step > 0).fill_null(0),
        "there": marked.there.sum(where=marked.goes_on).fill_null(0),
    }
    if followers:
        episodes = marked.group_by("episode").aggregate(**sums)
        fits = episodes.here == episodes.there
    else:
        episodes = marked.group_by("episode").aggregate(**sums, last=marked.step.max())
        end = _hash(episodes.last + 1)
        fits = episodes.there.isin([episodes.here, episodes.here + end])
    sound = ((episodes.firsts == 1) & fits).fill_null(False)
    doubtful = fetch(episodes.filter(~sound).select("episode"), logs.origin)
    if doubtful.num_rows == 0:
        return None
    if doubtful.num_rows > MOST_DOUBTFUL:
        return rows
    # The episodes come back as a table: DuckDB would keep a copy of all rows to read them twice.
    found = ibis.memtable(doubtful)
    return rows.semi_join(found, episode == found.episode)


@ibis.udf.scalar.builtin(name="hash")
def _duckdb_hash(value) -> dt.uint64:  # type: ignore[no-untyped-def]
    """Return a hash of any value; DuckDB adds them up with 128 bits, so that nothing overflows."""


def _hash(*columns: ibis.Column) -> ibis.Column:
    """Return a hash of several columns."""
    return _duckdb_hash(ibis.struct({f"c{i}": column for i, column in enumerate(columns)}))


def _followers(logs: LogTable) -> list[str]:
    """Return the columns of a row that say what the state of the following row must be."""
    if "hash_n0" in logs.rows.columns:
        return ["hash_n0"]
    # Next states that were filled in need no check.
    return [name for name in logs.next_states if f"raw_{name}" in logs.rows.columns]


def _state_of(follower: str) -> str:
    """Return the column that holds in the following row what one of `_followers` holds here."""
    return follower.replace("n", "s")


def _rules_alone(rows: _EngineRows, logs: LogTable) -> list[Rule]:
    """Return the rules of a row alone, in the order in which they are to be reported."""
    if "fits_s0" in logs.rows.columns:
        state = _list_rules(rows, logs)
    elif logs.numbers:
        state = _number_rules(rows, logs)
    else:
        state = label_rules(rows, logs.states)
    return [*row_rules(rows, logs.episode_key[::-1], state), *_reading_rules(rows, logs)]


def _list_rules(rows: _EngineRows, logs: LogTable) -> list[Rule]:
    """Return the rules of states that are lists."""
    wanted = f"finite numbers of shape {list_shape(logs.rows['s0'], logs.shape)}"
    rules = [Rule("s0", ~rows["fits_s0"], f"the state must be {wanted}", GAP)]
    if "n0" in logs.rows.columns:
        text = f"the next state must be {wanted}, or missing"
        rules.append(Rule("n0", ~rows["fits_n0"], text, GAP))
    return rules


def _number_rules(rows: _EngineRows, logs: LogTable) -> list[Rule]:
    """Return the rules of states that are numbers."""
    text = "the state must be a finite number"
    rules = [Rule(name, ~rows.finite(name), text, GAP) for name in logs.states]
    nexts = [name for name in logs.next_states if name in logs.rows.columns]
    for name in nexts:
        held = rows[f"raw_{name}"].notnull()
        text = "the next state must be a finite number, or missing"
        rules.append(Rule(name, held & ~rows.finite(name), text, GAP))
        others = ibis.or_(*(rows[other].notnull() for other in nexts))
        text = "the next state is missing in some of its columns only"
        rules.append(Rule(name, ~held & others, text))
    return rules


def _reading_rules(rows: _EngineRows, logs: LogTable) -> list[Rule]:
    """Return the rules of values that make no label, or a label that has another meaning."""
    rules = []
    if "source_fits" in rows.columns:
        text = "the row is of another source than the file says it is"
        rules.append(Rule("source_fits", ~rows["source_fits"], text))
    for name in (*logs.states, *logs.next_states):
        if f"lost_{name}" in rows.columns:
            text = "the next state is neither a label nor missing"
            rules.append(Rule(name, rows[f"lost_{name}"], text))
        if f"taken_{name}" in rows.columns:
            text = "-1 stands for a missing value; change the number"
            rules.append(Rule(name, rows[f"taken_{name}"], text))
    return rules


def _jump_rules(rows: _EngineRows, logs: LogTable) -> list[Rule]:
    """Return the rules by which the state of a row is the next state of the row before."""
    followers = _followers(logs)
    if not logs.numbers:
        return jump_rules(rows, [_state_of(name) for name in followers], followers)
    rules = []
    for name in followers:  # a missing number is unknown, and no jump
        state, before = _state_of(name), rows.before(name)
        jump = rows.continues & before.notnull() & (before != rows[state])
        rules.append(Rule(state.removeprefix("hash_"), jump, JUMP, DIGITS))
    return rules


def _message(key: Mapping[str, Any], rule: Rule, logs: LogTable) -> str:
    """Return what is wrong with a row, with the values of the user's table."""
    row = logs.row_of(key)
    value = row.get(f"raw_{rule.column}", row[rule.column])
    shown = repr(value)
    if value is None:
        shown = "nothing"
    elif isinstance(value, list):  # it may be long
        shown = fault(value, list_shape(logs.rows["s0"], logs.shape)) or "another one"
    if rule.column in logs.states and row[rule.column] is None:
        gaps = logs.rows.aggregate(n=logs.rows[rule.column].isnull().sum(), total=logs.rows.count())
        shown += ", as in {n:,} of {total:,} rows".format(**fetch(gaps, logs.origin).to_pylist()[0])
    hint = f" ({rule.hint})" if rule.hint else ""
    return f"{logs.place(row, rule.column)}: {rule.text}; found {shown}{hint}."


def _without_bad(bad: ibis.Table, rules: Sequence[Rule], logs: LogTable) -> LogTable:
    """Return the logs without the episodes that hold a bad row."""
    key = logs.episode_key
    reasons = fetch(bad.group_by("problem").aggregate(n=bad.count()), logs.origin).to_pylist()
    if not reasons:
        return replace(logs, sound=True)
    gone = fetch(bad.select(key).distinct(), logs.origin)
    kept = logs.rows.anti_join(ibis.memtable(gone), key)
    for name in key:  # a row without an episode belongs to none that could be kept
        kept = kept.filter(kept[name].notnull())
    sizes = [rows.aggregate(n=rows.count()) for rows in (kept, logs.rows)]
    left, total = (fetch(size, logs.origin)["n"][0].as_py() for size in sizes)
    by_reason = {rules[reason["problem"]].text: reason["n"] for reason in reasons}
    dropped = Dropped(gone.num_rows, total - left, by_reason)
    if left == 0:
        raise DataError(f"{logs.origin}: every episode holds a bad row, nothing is left.")
    words = "; ".join(f"{text} ({n:,} rows)" for text, n in by_reason.items())
    warnings.warn(
        f"{logs.origin}: {gone.num_rows:,} episodes with {dropped.rows:,} of {total:,} rows were "
        f"left out: {words}. Leaving episodes out selects on outcomes: where bad rows follow some "
        "outcomes more often, bounds can fail.",
        DroppedEpisodesWarning,
        stacklevel=3,
    )
    return replace(logs, rows=kept, sound=True, dropped=dropped)
