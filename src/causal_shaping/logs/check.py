"""Are the rows of a log sound? One query over the engine that holds them, one clear message for what is wrong."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import ibis

from causal_shaping.errors import DataError, DroppedEpisodesWarning
from causal_shaping.logs.table import Dropped, LogTable, fetch, looking_at_rows


@dataclass(frozen=True)
class Problem:
    """A way in which a row can be bad: when, in which column, and in which words."""

    when: ibis.Value
    column: str
    text: str


def check_logs(logs: LogTable, *, skip_bad_episodes: bool = False) -> LogTable:
    """Return logs whose rows are sound.

    Every row must have its episode, a step, state and action, a finite reward, and flags that are true or false. The
    steps of an episode must be 0, 1, 2, ...; nothing may follow an end; the next state of a row must be the state of
    the following one.

    Args:
        logs: what `open_logs` returned.
        skip_bad_episodes: leave out whole episodes that hold a bad row, with a warning, instead of raising.

    Raises:
        DataError: names file, row and column of the first bad row.
    """
    if logs.sound:
        return logs
    episode = ["episode"] if logs.source is not None else ["source", "episode"]
    window = ibis.window(group_by=episode, order_by="step")
    rows = logs.rows
    before = {"step": rows.step, "ended": rows.terminated | rows.truncated}
    before |= {name: rows[name] for name in logs.next_states}
    rows = rows.mutate(**{f"last_{name}": column.lag().over(window) for name, column in before.items()})
    problems = _problems(rows, logs)
    code = ibis.cases(*((problem.when, i) for i, problem in enumerate(problems)), else_=ibis.null("int64"))
    bad = rows.mutate(problem=code).filter(lambda t: t.problem.notnull())
    order = ["row"] if "row" in rows.columns else [*episode, "step"]
    with looking_at_rows(rows):
        if skip_bad_episodes:
            return _without(bad, episode, problems, logs)
        found = fetch(bad.order_by(order).limit(1), logs.origin).to_pylist()
    if found:
        raise DataError(_message(found[0], problems[found[0]["problem"]], logs))
    if fetch(logs.rows.select("step").limit(1), logs.origin).num_rows == 0:
        raise DataError(f"{logs.origin} has no rows.")
    return replace(logs, sound=True)


def _problems(rows: ibis.Table, logs: LogTable) -> list[Problem]:
    steps = rows.step - rows.last_step
    goes_on = rows.last_step.notnull()
    result = [Problem(rows.episode.isnull(), "episode", "the episode is missing")]
    if logs.source is None:
        result.append(Problem(rows.source.isnull(), "source", "the source is missing"))
    result += [
        Problem(rows.step.isnull(), "step", "the step is missing"),
        Problem(rows.step < 0, "step", "a step cannot be before the first"),
        *(Problem(rows[name].isnull(), name, "the state is missing or no number") for name in logs.states),
        Problem(rows.action.isnull(), "action", "the action is missing"),
        Problem(
            rows.reward.isnull() | rows.reward.isnan() | rows.reward.isinf(), "reward", "the reward must be finite"
        ),
        Problem(rows.terminated.isnull(), "terminated", "the flag must be true or false (or 1 or 0)"),
        Problem(rows.truncated.isnull(), "truncated", "the flag must be true or false (or 1 or 0)"),
        Problem(
            ~goes_on & (rows.step != 0),
            "step",
            "the episode does not begin with its first step (first_step=1 if steps count from 1)",
        ),
        Problem(steps == 0, "step", "the step stands twice in its episode"),
        Problem(steps > 1, "step", "steps are missing before this one"),
        Problem(goes_on & rows.last_ended, "step", "the episode goes on after it was terminated or truncated"),
    ]
    if "source_fits" in rows.columns:
        result.append(
            Problem(~rows.source_fits, "source_fits", "the row is of another source than the file says it is")
        )
    for name in logs.next_states:
        if f"lost_{name}" in rows.columns:
            result.append(Problem(rows[f"lost_{name}"], name, "the next state is neither a label nor missing"))
    for state, follower in zip(logs.states, logs.next_states, strict=True):
        last = rows[f"last_{follower}"]
        differs = goes_on & (last.isnull() | (last != rows[state]))
        result.append(Problem(differs, state, "the state is not the next state of the row before"))
    return result


def _message(row: dict[str, Any], problem: Problem, logs: LogTable) -> str:
    column = repr(logs.names.get(problem.column, problem.column))
    return f"{logs.place(row, column)}: {problem.text}; found {row[problem.column]!r}."


def _without(bad: ibis.Table, episode: list[str], problems: list[Problem], logs: LogTable) -> LogTable:
    """Return the logs without the episodes that hold a bad row."""
    reasons = fetch(bad.group_by("problem").aggregate(n=bad.count()), logs.origin).to_pylist()
    if not reasons:
        return replace(logs, sound=True)
    gone = fetch(bad.select(episode).distinct(), logs.origin)
    kept = logs.rows.anti_join(ibis.memtable(gone), episode)
    for name in episode:  # a row without an episode belongs to none that could be kept
        kept = kept.filter(kept[name].notnull())
    left = fetch(kept.aggregate(n=kept.count()), logs.origin).to_pylist()[0]["n"]
    total = fetch(logs.rows.aggregate(n=logs.rows.count()), logs.origin).to_pylist()[0]["n"]
    dropped = Dropped(gone.num_rows, total - left, {problems[r["problem"]].text: r["n"] for r in reasons})
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
