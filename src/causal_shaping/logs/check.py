"""Are the rows of a log sound? One query over the engine that holds them, one clear message for what is wrong.

Comparing a row with the one before it needs the rows of each episode in the order of their steps, which engines sort on
disk where memory is short.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ibis

from causal_shaping.data.rows import JUMP, Rows, Rule, jump_rules, label_rules, order_rules, row_rules
from causal_shaping.errors import DataError, DroppedEpisodesWarning
from causal_shaping.logs._columns import fault, is_finite, list_shape
from causal_shaping.logs.table import Dropped, LogTable, fetch, looking_at_rows

GAP = "fill gaps first, or set skip_bad_episodes to leave such episodes out"
DIGITS = "if both were rounded, leave the columns of the next state out: it is the state of the following row"


class _Columns(Rows):
    """The rows of an engine, each beside the row before it in its episode."""

    def __init__(self, rows: ibis.Table, episode: Sequence[str], followers: Sequence[str]) -> None:
        window = ibis.window(group_by=episode, order_by="step")
        before = {"step": rows.step, "ended": rows.terminated | rows.truncated}
        before |= {name: rows[name] for name in followers}
        self.columns = rows.mutate(**{f"last_{name}": column.lag().over(window) for name, column in before.items()})
        self.continues = self.columns.last_step.notnull()

    def before(self, column: str) -> ibis.Column:
        return self[f"last_{column}"]

    def missing(self, column: str) -> ibis.Column:
        return self[column].isnull()

    def finite(self, column: str) -> ibis.Column:
        return is_finite(self[column])

    def differ(self, one: ibis.Column, other: ibis.Column) -> ibis.Column:
        return ~one.identical_to(other)


def check_logs(logs: LogTable, *, skip_bad_episodes: bool = False) -> LogTable:
    """Return logs whose rows are sound.

    Every row must have its episode, a step, state and action, a finite reward, and flags that are true or false. The
    steps of an episode must be 0, 1, 2, ...; nothing may follow an end; the next state of a row must be the state of
    the following one.

    Args:
        logs: what `open_logs` returned.
        skip_bad_episodes: leave out every episode that holds a bad row, with a warning, instead of raising.

    Raises:
        DataError: names file, row and column of the first bad row.
    """
    if logs.sound:
        return logs
    episode = ["episode"] if logs.source is not None else ["episode", "source"]
    rules, rows = _rules(logs, episode)
    code = ibis.cases(*((rule.broken, i) for i, rule in enumerate(rules)), else_=ibis.null("int64"))
    bad = rows.mutate(problem=code).filter(lambda t: t.problem.notnull())
    order = ["row"] if "row" in bad.columns else [*episode, "step"]
    key = [*order, *(["file"] if "file" in bad.columns else [])]
    with looking_at_rows(logs.rows):
        if skip_bad_episodes:
            return _without(bad, episode, rules, logs)
        found = fetch(bad.select(*key, "problem").order_by([*order, "problem"]).limit(1), logs.origin).to_pylist()
        if found:
            raise DataError(_message(found[0], rules[found[0].pop("problem")], logs))
    if fetch(logs.rows.select("step").limit(1), logs.origin).num_rows == 0:
        raise DataError(f"{logs.origin} has no rows.")
    return replace(logs, sound=True)


def _rules(logs: LogTable, episode: Sequence[str]) -> tuple[list[Rule], ibis.Table]:
    """Return the rules in the order in which they are to be reported, and the rows to apply them to."""
    lists = "fits_s0" in logs.rows.columns
    followers = [name for name in (["hash_n0"] if lists else logs.next_states) if name in logs.rows.columns]
    rows = _Columns(logs.rows, episode, followers)
    if lists:
        state = _list_rules(rows, logs)
    else:
        state = _number_rules(rows, logs) if logs.numbers else label_rules(rows, logs.states)
    if logs.numbers:
        jumps = [_number_jump(rows, name) for name in followers]
    else:
        jumps = jump_rules(rows, logs.states, logs.next_states)
    alone = [*row_rules(rows, episode, state), *_reading_rules(rows.columns, logs)]
    return [*alone, *order_rules(rows, jumps)], rows.columns


def _list_rules(rows: _Columns, logs: LogTable) -> list[Rule]:
    """Return the rules of states that are lists."""
    wanted = f"finite numbers of shape {list_shape(logs.rows['s0'], logs.shape)}"
    state = [Rule("s0", ~rows["fits_s0"], f"the state must be {wanted}", GAP)]
    if "n0" in logs.rows.columns:
        state.append(Rule("n0", ~rows["fits_n0"], f"the next state must be {wanted}, or missing", GAP))
    return state


def _number_rules(rows: _Columns, logs: LogTable) -> list[Rule]:
    """Return the rules of states that are numbers."""
    state = [Rule(name, ~rows.finite(name), "the state must be a finite number", GAP) for name in logs.states]
    nexts = [name for name in logs.next_states if name in logs.rows.columns]
    for name in nexts:
        held = rows[f"raw_{name}"].notnull()
        state.append(Rule(name, held & ~rows.finite(name), "the next state must be a finite number, or missing", GAP))
        others = ibis.or_(*(rows[other].notnull() for other in nexts))
        state.append(Rule(name, ~held & others, "the next state is missing in some of its columns only"))
    return state


def _number_jump(rows: _Columns, follower: str) -> Rule:
    """Return the rule by which a number of a state is that of the next state of the row before, where it is known."""
    state = "hash_s0" if follower == "hash_n0" else f"s{follower[1:]}"
    before = rows.before(follower)
    jump = rows.continues & before.notnull() & (before != rows[state])
    return Rule(state.removeprefix("hash_"), jump, JUMP, DIGITS)


def _reading_rules(rows: ibis.Table, logs: LogTable) -> list[Rule]:
    """Return what else can be wrong with rows that are read from a table: values that make no label."""
    rules = []
    if "source_fits" in rows.columns:
        rules.append(Rule("source_fits", ~rows.source_fits, "the row is of another source than the file says it is"))
    for name in (*logs.states, *logs.next_states):
        if f"lost_{name}" in rows.columns:
            rules.append(Rule(name, rows[f"lost_{name}"], "the next state is neither a label nor missing"))
        if f"taken_{name}" in rows.columns:
            rules.append(Rule(name, rows[f"taken_{name}"], "-1 stands for a missing value; change the number"))
    return rules


def _message(key: Mapping[str, Any], rule: Rule, logs: LogTable) -> str:
    """Return what is wrong with a row, with the values of the user's table."""
    row = logs.row_of(key)
    value = row.get(f"raw_{rule.column}", row[rule.column])
    held = "nothing" if value is None else _shown(value, logs)
    if rule.column in logs.states and row[rule.column] is None:
        gaps = logs.rows.aggregate(n=logs.rows[rule.column].isnull().sum(), total=logs.rows.count())
        held += ", as in {n:,} of {total:,} rows".format(**fetch(gaps, logs.origin).to_pylist()[0])
    hint = f" ({rule.hint})" if rule.hint else ""
    return f"{logs.place(row, rule.column)}: {rule.text}; found {held}{hint}."


def _shown(value: Any, logs: LogTable) -> str:
    """Return a value as text; of a long list only what is wrong with it."""
    if not isinstance(value, list):
        return repr(value)
    return fault(value, list_shape(logs.rows["s0"], logs.shape)) or "another one"


def _without(bad: ibis.Table, episode: Sequence[str], rules: Sequence[Rule], logs: LogTable) -> LogTable:
    """Return the logs without the episodes that hold a bad row."""
    reasons = fetch(bad.group_by("problem").aggregate(n=bad.count()), logs.origin).to_pylist()
    if not reasons:
        return replace(logs, sound=True)
    gone = fetch(bad.select(episode).distinct(), logs.origin)
    kept = logs.rows.anti_join(ibis.memtable(gone), episode)
    for name in episode:  # a row without an episode belongs to none that could be kept
        kept = kept.filter(kept[name].notnull())
    left, total = (fetch(t.aggregate(n=t.count()), logs.origin)["n"][0].as_py() for t in (kept, logs.rows))
    dropped = Dropped(gone.num_rows, total - left, {rules[r["problem"]].text: r["n"] for r in reasons})
    if left == 0:
        raise DataError(f"{logs.origin}: every episode holds a bad row, nothing is left.")
    words = "; ".join(f"{text} ({n:,} rows)" for text, n in dropped.reasons.items())
    warnings.warn(
        f"{logs.origin}: {gone.num_rows:,} episodes with {dropped.rows:,} of {total:,} rows were left out: {words}. "
        "Leaving episodes out selects on outcomes: where bad rows follow some outcomes more often, bounds can fail.",
        DroppedEpisodesWarning,
        stacklevel=3,
    )
    return replace(logs, rows=kept, sound=True, dropped=dropped)
