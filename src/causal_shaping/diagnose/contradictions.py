"""Where sources do not fit together.

- `contradictions`: the states and actions after which two sources show outcomes that differ by more than chance, and
  those of which sources prove more mass than there is.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from causal_shaping._checks import check_probability
from causal_shaping._progress import Progress, no_progress, part_of
from causal_shaping.bounds.agreement import cell_parts, excess_masses
from causal_shaping.data.counts import Counts
from causal_shaping.data.result import DataFrame, ResultSequence, data_frame
from causal_shaping.data.space import UNKNOWN, Label
from causal_shaping.data.words import state_text
from causal_shaping.diagnose._compare import (
    Disagreements,
    disagreements,
    known_next_state,
    smallest_confounding,
    tables_of,
)
from causal_shaping.diagnose.coverage import share_text

LEVEL = 0.05
"""The chance that `contradictions` names anything at all where all sources are unconfounded."""

CONFOUNDED = "At least one of them is confounded there"
"""The first reason of a contradiction."""

MOST_LISTED = 20
"""So many contradictions are put into words; JSON and data frames hold all."""

MOST_NAMED = 3
"""So many (state, action) with too much mass are named in a sentence."""

OTHER_WORLD = "they did not watch the same world, or a hidden cause lasts over the episode"
"""What can be the matter if no confounding explains what sources show."""


@dataclass(frozen=True)
class Contradiction:
    """A (state, action) after which two sources show outcomes that differ by more than chance.

    At least one of the two is confounded there; or they did not watch the same world; or a hidden cause lasts over the
    episode, so that what happened before tells of it.

    Attributes:
        first: a source.
        second: the other.
        state: label of the state.
        where: the state in words.
        action: label of the action.
        p_value: of the homogeneity test, corrected for all tests that were made (Holm).
        outcome: the outcome that differs most, in words.
        first_share: how often it follows in the first source.
        second_share: how often it follows in the second.
        visits: how many steps each of the two shares is of.
        confounding: the smallest Gamma at which both sources are possible, sampling error allowed for at 95%; inf if
            only unlimited confounding reconciles them, None if nothing does.
        step: at which step, counted from 0, of step-indexed counts; None if steps are pooled.
    """

    first: str
    second: str
    state: Label
    where: str
    action: Label
    p_value: float
    outcome: str
    first_share: float
    second_share: float
    visits: tuple[int, int]
    confounding: float | None
    step: int | None = None

    def describe(self, *, reasons: bool = True) -> str:
        """Return it in words, with what it can mean."""
        if self.confounding is None:
            why = f"No confounding reconciles them (at 95% confidence){f': {OTHER_WORLD}' if reasons else ''}."
        else:
            # The smallest Gamma that fits is a lower limit of the truth, and no estimate of it.
            needed = f"it takes a confounding of at least {self.confounding:.3g} to reconcile them"
            if f"{self.confounding:.3g}" == "1":
                needed = "a little confounding reconciles them"
            elif math.isinf(self.confounding):
                needed = "unlimited confounding alone reconciles them"
            elif math.isnan(self.confounding):  # a small cell is hidden
                needed = "some confounding reconciles them"
            why = f"{needed[0].upper()}{needed[1:]}."
            if reasons:
                why = f"{CONFOUNDED} ({needed}), or {OTHER_WORLD}."
        when = "" if self.step is None else f" at step {self.step}"
        shares = " against ".join(
            f"a share that is {share_text(share)}" if math.isnan(share) else share_text(share)
            for share in (self.first_share, self.second_share)
        )
        return (
            f"{self.first} and {self.second} disagree on what {self.action} does in {self.where}{when}: it "
            f"{self.outcome} in {shares}. {why}"
        )

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True)
class ExcessMass:
    """A (state, action) of which the sources together prove more mass than there is, whatever their confounding.

    They did not watch the same world, or a hidden cause lasts over the episode; see `contradictions`.

    Attributes:
        state: label of the state.
        where: the state in words.
        action: label of the action.
        total: what the proven masses add up to: the sum over outcomes of the largest share of any source.
        p_value: of the hypothesis that the excess is chance, corrected for all (state, action).
        step: at which step, counted from 0, of step-indexed counts; None if steps are pooled.
    """

    state: Label
    where: str
    action: Label
    total: float
    p_value: float
    step: int | None = None

    def describe(self) -> str:
        """Return it in words; without numbers where small cells are hidden."""
        when = "" if self.step is None else f" at step {self.step}"
        shown = f" ({self.total:.3g}, p = {self.p_value:.2g})" if not math.isnan(self.total) else ""
        return f"{self.action} in {self.where}{when}{shown}"

    def __str__(self) -> str:
        masses = "The masses that the sources prove add up to more than 1, even with unlimited confounding"
        return f"{masses}: {self.describe()}. So {OTHER_WORLD}."


@dataclass(frozen=True, eq=False, repr=False)
class Contradictions(ResultSequence[Contradiction]):
    """Where sources contradict each other: a sequence of `Contradiction`, the surest first.

    Attributes:
        items: the contradictions.
        sources: the names of all sources that were compared.
        level: the chance of any false report among the contradictions, and among the excess masses.
        compared: how many (pair of sources, state, action) were compared.
        shared: how many both sources of a pair took; what was not compared holds rows without a known outcome.
        excess: where the sources together prove more mass than there is, whatever their confounding; the largest
            first.
    """

    items: tuple[Contradiction, ...]
    sources: tuple[str, ...]
    level: float
    compared: int
    shared: int
    excess: tuple[ExcessMass, ...] = ()

    def findings(self) -> list[str]:
        """Return what was found, in sentences."""
        if len(self.sources) == 1:
            return ["With one source there is nothing to compare: confounding cannot be tested for."]
        result = self._excess_in_words()
        if self.items:
            return [*result, *self._items_in_words()]
        nothing = "No two sources contradict each other. That does not prove that they are unconfounded."
        if self.shared and not self.compared:
            nothing = (
                f"Sources could not be compared: each of the {self.shared} state-actions that two of them took holds "
                "rows without a known outcome."
            )
        elif self.compared < self.shared:
            nothing += f" {self.compared} of {self.shared} state-actions that two sources took were compared; "
            nothing += "the others hold rows without a known outcome."
        return [*result, nothing]

    def _items_in_words(self) -> list[str]:
        many = len(self.items)
        if many == 1:
            return ["1 contradiction between sources:", self.items[0].describe()]
        head = (
            f"{many} contradictions between sources. Where two disagree: {CONFOUNDED[0].lower()}{CONFOUNDED[1:]}, or "
        )
        shown = [item.describe(reasons=False) for item in self.items[:MOST_LISTED]]
        return [f"{head}{OTHER_WORLD}.", *shown, *([f"And {many - MOST_LISTED} more."] if many > MOST_LISTED else [])]

    def _excess_in_words(self) -> list[str]:
        if not self.excess:
            return []
        named = "; ".join(item.describe() for item in self.excess[:MOST_NAMED])
        more = len(self.excess) - MOST_NAMED
        return [
            f"The sources prove more mass than there is, even with unlimited confounding, for {named}"
            f"{f'; and {more} more' if more > 0 else ''}: {OTHER_WORLD}. Bounds that combine them do not hold there."
        ]

    def summary(self) -> str:
        """Return what was found, a sentence a line."""
        return "\n".join(self.findings())

    def to_pandas(self) -> DataFrame:
        """Return a row per contradiction; hidden numbers are missing."""
        rows = self.as_plain()
        for row in rows:
            row["first_visits"], row["second_visits"] = row.pop("visits")
        names = [field.name for field in fields(Contradiction) if field.name != "visits"]
        return data_frame(rows, columns=[*names, "first_visits", "second_visits", "text"])

    def as_plain(self) -> list[dict[str, Any]]:
        """Return everything as plain values, for JSON."""
        return [asdict(item) | {"text": item.describe()} for item in self.items]

    def excess_as_plain(self) -> list[dict[str, Any]]:
        """Return the excess masses as plain values, for JSON."""
        return [asdict(item) for item in self.excess]

    def __repr__(self) -> str:
        return f"Contradictions({len(self.items)} in {self.compared} comparisons of {', '.join(self.sources)})"


def contradictions(
    counts: Counts, *, level: float = LEVEL, seed: int = 0, progress: Progress = no_progress
) -> Contradictions:
    """Return where two sources show different outcomes after the same action in the same state.

    An unconfounded source shows what do(x) does, whatever its policy. So two unconfounded sources of one world show
    equal outcome distributions after (s, x), and a difference beyond chance has one of three reasons: at least one of
    them is confounded; or they did not watch the same world; or a hidden cause lasts over the episode, so that what
    follows (s, x) depends on what was done before. An outcome is a next state or an end, with the reward or its bin.

    Per pair of sources and (s, x), Pearson's test of homogeneity. Where its approximate p-value is below 0.05 it is
    replaced by that of a permutation test, which is valid at any count: outcomes are dealt to the two sources at
    random. P-values are corrected for the number of tests by Holm's method, so the chance of any false report is at
    most `level`.

    Confounding, however strong, does not explain everything: source i proves that do(x) gives outcome o at least the
    mass p_i(x, o | s), so in one world the sum over o of the largest of these is at most 1. Where it is larger by more
    than chance, `excess` says so: the second or third reason holds. The p-value is the smallest alpha at which lower
    confidence limits of the masses, which all hold with probability 1 - alpha, add up to more than 1 (for pooled
    steps, taking the number of visits as given); corrected by the number of (s, x), so that the chance of any false
    report is again at most `level`.

    Step-indexed counts are compared step by step. A (s, x) with unknown outcomes is left out of the first test:
    whether an outcome is known can depend on what it was.

    Args:
        counts: of a sample; with one source there is nothing to compare.
        level: the chance of any false report, of each of the two kinds.
        seed: of the permutations.
        progress: called while sources are compared.
    """
    check_probability("level", level, example="0.05")
    found = disagreements(counts, level, seed, part_of(progress, 0.0, 0.9))
    progress(0.9, 1.0, "Adding up masses")
    excess = excess_masses(counts)
    step, state, action = cell_parts(counts, excess.cell)
    sure = np.flatnonzero(excess.p_value <= level)
    masses = tuple(
        ExcessMass(
            state=counts.space.states[state[i]],
            where=state_text(counts.space, int(state[i])),
            action=counts.space.actions[action[i]],
            total=float(excess.total[i]),
            p_value=float(excess.p_value[i]),
            step=None if counts.step is None else int(step[i]),
        )
        for i in sure
    )
    progress(1.0, 1.0, "Adding up masses")
    return Contradictions(_in_words(counts, found), counts.sources, level, found.compared, found.shared, masses)


def _in_words(counts: Counts, found: Disagreements) -> tuple[Contradiction, ...]:
    """Return disagreements with the outcome that differs most, and the confounding that reconciles the sources."""
    if not len(found.first):
        return ()
    tables = tables_of(found)
    taken = np.add.reduceat(tables.n, tables.begin, axis=1)
    shares = tables.n / taken[:, tables.table]
    gap = np.abs(shares[0] - shares[1]).round(12)
    furthest = np.lexsort((-shares[0], -gap, tables.table))[tables.begin].tolist()
    gamma = smallest_confounding(tables)
    after, end = known_next_state(counts), np.append(tables.begin[1:], len(tables.table))
    result = []
    for i, (most, a, b) in enumerate(zip(furthest, tables.begin.tolist(), end.tolist(), strict=True)):
        entry, entries = tables.first[most], tables.first[a:b]
        same = (after[entries] == after[entry]) & (counts.terminated[entries] == counts.terminated[entry])
        paid = _paid(counts, int(entry)) if same.sum() > 1 else ""
        item = Contradiction(
            first=counts.sources[found.first[i]],
            second=counts.sources[found.second[i]],
            state=counts.space.states[found.state[i]],
            where=state_text(counts.space, int(found.state[i])),
            action=counts.space.actions[found.action[i]],
            p_value=float(found.p_value[i]),
            outcome=_outcome(counts, int(entry), int(after[entry])) + paid,
            first_share=float(shares[0, most]),
            second_share=float(shares[1, most]),
            visits=(int(taken[0, i]), int(taken[1, i])),
            confounding=None if math.isnan(gamma[i]) else float(gamma[i]),
            step=None if counts.step is None else int(found.step[i]),
        )
        result.append(item)
    return tuple(result)


def _outcome(counts: Counts, entry: int, after: int) -> str:
    place = "" if after == UNKNOWN else state_text(counts.space, after)
    if counts.terminated[entry]:
        return f"ends in {place}" if place else "ends"
    return f"leads to {place}"


def _paid(counts: Counts, entry: int) -> str:
    """Return the reward of an outcome in words."""
    bins, reward = counts.space.reward_bins, counts.reward_min[entry]
    if bins is None:
        return f" with reward {reward:.6g}"
    place = int(bins(reward))
    low, high = (f"{edge:.6g}" for edge in (bins.edges[max(place - 1, 0)], bins.edges[min(place, len(bins.edges) - 1)]))
    if place == 0:
        return f" with a reward below {low}"
    return f" with a reward of {low} or more" if place == len(bins.edges) else f" with a reward from {low} to {high}"
