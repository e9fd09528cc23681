"""How to choose Gamma: what leaving out a logged column would amount to.

- `confounding_of`: per column and source, the confounding that there would be if the column had not been logged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import ibis
import numpy as np

from causal_shaping._checks import check_integer, check_names
from causal_shaping._progress import Progress, no_progress
from causal_shaping.data.arrays import LongArray
from causal_shaping.data.columns import numbered
from causal_shaping.data.counts import MAX_REWARDS
from causal_shaping.data.result import DataFrame, ResultSequence, data_frame, text_table
from causal_shaping.diagnose._standardised import Table, Ties, p_value, tabulate
from causal_shaping.errors import ArgumentError, DataError
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.counting import Item, opened_logs
from causal_shaping.logs.opening import open_logs
from causal_shaping.logs.queries import fetch
from causal_shaping.logs.table import LogTable

QUANTILES = 5
"""Quantiles that a column of many numbers is cut into: five see about nine tenths of a bias (Cochran 1968)."""

MOST_VALUES = 100
"""A column of more different texts than this is an identifier."""

DRAWS = 99
"""Samples without a tie that the measured one is compared with."""

MOST_CASES = 0.95
"""The confounding of a column is what this share of cases does not exceed."""

LEVEL = 0.05
"""A column with a larger p-value is called not distinguishable from 1."""

OVERLAP = 0.005
"""A smaller share of steps without overlap is not worth a word."""


@dataclass(frozen=True)
class HiddenColumn:
    """What leaving out one column amounts to in one source.

    Attributes:
        column: its name.
        source: the source.
        values: how many values, or bins of values, it has there.
        steps: how many steps were measured: those in states in which the source took several actions.
        measured: the factor that the odds of an action, given the outcome it would have, move by at most in 95% of
            cases; sampling error makes it too large.
        by_chance: what the same figure would be if the column tied nothing, from samples drawn without the tie.
        confounding: `measured` less what chance adds, never below 1. NaN if nothing can be measured.
        median: the same for half of the cases.
        p_value: how often a sample without the tie shows as much. Not corrected for the number of columns.
        without_overlap: of the steps with another action, the share at values of the column with which the action was
            never taken: what it would have done there is unknown.
    """

    column: str
    source: str
    values: int
    steps: int
    measured: float
    by_chance: float
    confounding: float
    median: float
    p_value: float
    without_overlap: float

    @property
    def distinguishable(self) -> bool:
        """Whether the tie is more than chance, at a level of 5%."""
        return self.p_value <= LEVEL

    def __str__(self) -> str:
        what = f"{self.source}: leaving out {self.column}"
        if np.isnan(self.confounding):
            why = "no state has several actions that were taken at the same value of it"
            return f"{what} amounts to something that cannot be measured, for {why}."
        if self.distinguishable:
            half = f"{self.median:.3g} in half"
            text = f"{what} amounts to a confounding of {self.confounding:.3g} (in 95% of cases; {half} of them)."
        else:
            text = (
                f"{what} cannot be distinguished from a confounding of 1: {self.measured:.3g} was measured, and chance "
                f"alone gives {self.by_chance:.3g}."
            )
        if self.without_overlap > OVERLAP:
            text += (
                f" At {self.without_overlap:.0%} of the steps with another action, the action was never taken with the "
                "same value: what it would have done there is unknown, and not in this number."
            )
        return text


@dataclass(frozen=True, eq=False, repr=False)
class HiddenColumns(ResultSequence[HiddenColumn]):
    """What leaving out each of some columns amounts to: a sequence of `HiddenColumn`.

    Attributes:
        items: one per column and source.
    """

    items: tuple[HiddenColumn, ...]

    HEADS = ("column", "source", "confounding", "in half of cases", "measured", "by chance", "p-value", "no overlap")

    def rows(self) -> list[list[str]]:
        """Return a row of text per column and source, under `HEADS`."""
        result = []
        for item in self.items:
            numbers = [f"{value:.3g}" for value in (item.confounding, item.median, item.measured, item.by_chance)]
            if np.isnan(item.confounding):
                numbers = ["-"] * 4
            elif not item.distinguishable:
                numbers[:2] = ["not above 1"] * 2
            p_value = "-" if np.isnan(item.p_value) else f"{item.p_value:.2f}"
            result.append([item.column, item.source, *numbers, p_value, f"{item.without_overlap:.0%}"])
        return result

    def findings(self) -> list[str]:
        """Return what each column amounts to, and how to use it, in sentences."""
        return [
            *map(str, self.items),
            "Choose Gamma by comparison: could what was not logged be stronger than the strongest of these? Each "
            "number takes its source as unconfounded given the state and that column, and holds in 95% of cases, "
            "whereas a Gamma must hold everywhere.",
        ]

    def summary(self) -> str:
        """Return a table with a row per column and source, and the findings."""
        return "\n".join([text_table(self.HEADS, self.rows(), "If a column had been hidden"), "", *self.findings()])

    def to_pandas(self) -> DataFrame:
        """Return a row per column and source."""
        return data_frame(self.as_plain(), columns=[*(field.name for field in fields(HiddenColumn)), "text"])

    def as_plain(self) -> list[dict[str, Any]]:
        """Return everything as plain values, for JSON."""
        return [asdict(item) | {"text": str(item)} for item in self.items]

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{item.column} in {item.source} {item.confounding:.3g}"
            if item.distinguishable
            else f"{item.column} in {item.source} not above 1"
            for item in self.items[:4]
        )
        return f"HiddenColumns({shown}{', ...' if len(self.items) > 4 else ''})"


def confounding_of(
    logs: Item | Iterable[Item],
    hidden: str | Sequence[str],
    *,
    quantiles: int = QUANTILES,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress = no_progress,
    **columns: Any,
) -> HiddenColumns:
    """Return how confounded each source would be if a logged column had not been logged: a yardstick for Gamma.

    How strong can a hidden cause be? Like those that were logged, perhaps. If a source is unconfounded given the state
    and a column, then without that column the odds of action x given the outcome o that x would have, over the odds
    given the state alone, are p(o | s, x) / sum over c of p(c | s, not x) p(o | s, x, c): the share of o where x was
    taken, over the share that it would have had where x was not taken. Gamma bounds this ratio and its inverse. The
    column's confounding is the larger of the two, as 95% of cases do not exceed it. Cases are (s, x, o), weighted by
    the visits to s, p(x | s) (1 - p(x | s)), and the mass that do(x) gives to o.

    A column ties action and outcome only if actions depend on it *and* outcomes do. So the measured number is compared
    with samples drawn without either tie: outcomes by (state, action) alone, and actions by state alone. The larger of
    the two is what chance gives, and the larger p-value is the p-value. What chance adds to the logarithm is
    subtracted in squares, as errors add.

    A part of the state is left out of the state, and of the next state; another column is added to what the state
    tells. Columns of many numbers are cut into quantiles, as are rewards of more than 64; steps without a known outcome
    are left out.

    Args:
        logs: what `count` takes. What `open_logs` returned must have been opened with the columns:
            `open_logs(..., hidden=["age"])`.
        hidden: the columns to look at, one at a time: parts of the state, or others.
        quantiles: how many a column of more numbers is cut into. Fewer see less of the tie, more need more rows.
        draws: how many samples of each kind to compare with.
        seed: of these.
        progress: called after each column of each log.
        columns: for files and tables, what they call their columns; see `open_logs`.

    Examples:
        >>> import numpy as np, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> severe = rng.random(4000) < 0.5
        >>> treated = rng.random(4000) < np.where(severe, 0.8, 0.2)
        >>> died = rng.random(4000) < np.where(severe, 0.5, 0.1)
        >>> ward = pd.DataFrame({"action": treated, "severe": severe, "reward": -1.0 * died, "episode": range(4000)})
        >>> ward = ward.assign(step=0, state=0, terminated=True)
        >>> print(confounding_of(ward, "severe", source="ward")[0])
        ward: leaving out severe amounts to a confounding of ...
    """
    check_names(columns, "confounding_of", confounding_of, open_logs)
    names = (hidden,) if isinstance(hidden, str) else tuple(hidden)
    if not names:
        raise ArgumentError("hidden names no column; give those that could have been left out, such as 'age'.")
    check_integer("quantiles", quantiles, least=2)
    check_integer("draws", draws, least=19)
    tables = [check_logs(table) for table in opened_logs(logs, hidden=names, **columns)]
    rng = np.random.default_rng(seed)
    found: list[HiddenColumn] = []
    for i, name in enumerate(names):
        for j, table in enumerate(tables):
            progress(i * len(tables) + j, len(names) * len(tables), f"Measuring what {name} ties in {table.origin}")
            found += [_compared(name, *part, draws, rng) for part in _parts(table, name, quantiles)]
    return HiddenColumns(tuple(found))


def _parts(table: LogTable, name: str, quantiles: int) -> Iterator[tuple[str, int, Table | None]]:
    """Yield each source of a table, how many values the column has in it, and its counts."""
    counted = fetch(_counting(table, name, quantiles), table.origin)
    if counted.num_rows == 0:
        raise DataError(f"{table.origin} holds no step with a known outcome.")
    names = counted.column_names
    sources = counted["source"].to_pylist() if table.source is None else [table.source] * counted.num_rows
    codes: dict[str, LongArray] = {
        "state": numbered(counted, [key for key in names if key in table.states])[0],
        "action": numbered(counted, ["action"])[0],
        "value": numbered(counted, ["value"])[0],
        "outcome": numbered(counted, [key for key in names if key in (*table.next_states, "terminated", "paid")])[0],
    }
    n = counted["n"].to_numpy().astype(np.float64)
    which = np.array(sources)
    for source in dict.fromkeys(sorted(sources)):
        here = which == source
        held = {key: column[here] for key, column in codes.items()}
        yield source, len(np.unique(held["value"])), tabulate(**held, n=n[here])


def _counting(table: LogTable, name: str, quantiles: int) -> ibis.Table:
    """Return the query: steps by source, state, action, value of the column, and outcome."""
    rows = table.rows
    part = table.columns.index(name) if name in table.columns else None
    if part is None and name not in table.hidden:
        raise ArgumentError(
            f"{table.origin} was opened without column {name!r}, which is no part of the state. Carry it along: "
            "name it in hidden when the logs are opened."
        )
    column = rows[table.hidden[name] if part is None else f"s{part}"]
    kept = [i for i in range(len(table.columns)) if i != part]
    known = rows.terminated | rows.n0.notnull()
    key = {
        **{f"s{i}": rows[f"s{i}"] for i in kept},
        **{f"n{i}": rows[f"n{i}"] for i in kept},
        **{key: rows[key] for key in ("action", "terminated")},
        "value": _cut(table, column, name, quantiles, few=quantiles),
        "paid": _cut(table, rows.reward, table.names.get("reward", "reward"), quantiles, few=MAX_REWARDS),
    }
    if table.source is None:
        key["source"] = rows.source
    chosen = rows.filter(known).select(**key)
    counted = chosen.group_by(list(key)).aggregate(n=chosen.count())
    return counted.order_by(list(key))  # so that the same logs and seed draw the same samples


def _cut(table: LogTable, column: ibis.Column, name: str, quantiles: int, few: int) -> ibis.Column:
    """Return a column as it is, or, of more than `few` numbers, as the number of the quantile."""
    kind = column.type()
    if kind.is_boolean() or kind.is_string():
        values = fetch(table.rows.select(column.name("value")).distinct().limit(MOST_VALUES + 1), table.origin)
        if values.num_rows > MOST_VALUES:
            raise DataError(
                f"{table.origin}, column {name!r} holds more than {MOST_VALUES} different texts. Put them into fewer "
                "groups, in a column of their own."
            )
        return column
    if not kind.is_numeric():
        raise DataError(
            f"{table.origin}, column {name!r} holds {kind}; it must hold numbers, texts, or true and false."
        )
    number = column.cast("float64")
    number = ibis.ifelse(number.isnan(), ibis.null("float64"), number)
    numbers = table.rows.select(number.name("number"))
    if fetch(numbers.distinct().limit(few + 1), table.origin).num_rows <= few:
        return number
    shares = {f"q{i}": numbers.number.quantile(i / quantiles) for i in range(1, quantiles)}
    edges = Counter(fetch(numbers.aggregate(**shares), table.origin).to_pylist()[0].values())
    above = [number > edge for edge in edges]
    above += [number >= edge for edge, times in edges.items() if times > 1]  # many rows hold it: a bin of its own
    return sum(part.cast("int32") for part in above).cast("int64")


def _compared(
    name: str, source: str, values: int, table: Table | None, draws: int, rng: np.random.Generator
) -> HiddenColumn:
    """Return what was measured beside what chance gives."""
    if table is None:
        return _unmeasured(name, source, values, 0.0)
    found = table.ties()
    if not found.weight.any():
        return _unmeasured(name, source, values, found.without_overlap)
    kinds = [[draw(rng) for _ in range(draws)] for draw in (table.without_outcome_tie, table.without_action_tie)]
    chance = _by_chance(kinds, MOST_CASES)
    confounding = _less(found.quantile(MOST_CASES), chance)
    return HiddenColumn(
        column=name,
        source=source,
        values=values,
        steps=int(table.group_n.sum()),
        measured=found.quantile(MOST_CASES),
        by_chance=chance,
        confounding=confounding,
        median=min(confounding, _less(found.quantile(0.5), _by_chance(kinds, 0.5))),
        p_value=max(p_value(found, kind) for kind in kinds),
        without_overlap=found.without_overlap,
    )


def _unmeasured(name: str, source: str, values: int, without_overlap: float) -> HiddenColumn:
    nothing = dict.fromkeys(("measured", "by_chance", "confounding", "median", "p_value"), np.nan)
    return HiddenColumn(name, source, values, 0, **nothing, without_overlap=without_overlap)


def _by_chance(kinds: Sequence[Sequence[Ties]], share: float) -> float:
    return max(float(np.median([ties.quantile(share) for ties in kind])) for kind in kinds)


def _less(measured: float, chance: float) -> float:
    """Return a factor without what chance adds to its logarithm."""
    return float(np.exp(np.sqrt(max(np.log(measured) ** 2 - np.log(chance) ** 2, 0.0))))
