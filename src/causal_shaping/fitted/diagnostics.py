"""How far to trust a fit, and whether it makes a useful potential: what held-out episodes say.

- `Diagnostics`: calibration, the two tests of `_held_out`, what lies beyond the logs, and a verdict.

The verdict is that of tables (`bounds.verdict`): shaping by phi leaves V* - phi to be learned, and what is the same in
all states of a step teaches nothing. With the best guess in place of V*, and the spread of members nu,

    left^2 = (var(guess - ceiling) + nu^2) / var(guess),    over the logged states of each step,

is 0 for phi = V* and 1 for phi = 0. No multiple of the rewards changes it, and no constant added to them where that
moves all values of a step alike: not where episodes can end early, which is another problem then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from causal_shaping.bounds.verdict import DOUBTFUL, HELPS
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.result import DataFrame, Result, data_frame, text_table
from causal_shaping.data.transitions import Transitions
from causal_shaping.fitted._forest import Reach
from causal_shaping.fitted._held_out import (
    MOST_BIAS,
    Scores,
    bias_of_maxima,
    calibration_error,
    level_of_w,
)
from causal_shaping.fitted.settings import Settings

LEVEL = 0.05
"""The chance of any false alarm, of each of the two tests."""

NOT_YET = "Do not use it as a potential for a deep agent yet"
"""The verdict on ceilings with rewards above 0, whatever the diagnostics say."""

ROUNDING = 1e-9
"""Values that differ by no more than this share of their size are equal."""


@dataclass(frozen=True)
class SourceScores:
    """How well a fit predicts held-out rows of one source.

    Attributes:
        source: its name.
        episodes: held-out episodes that were scored.
        rows: their rows.
        action_error: the mean distance between predicted probabilities of actions and their observed shares.
        value_error: the same for the probability that what follows is worth no more than each atom.
        action_gain: the mean log probability of the action taken, less that under the source's overall shares: above 0
            if the state tells what the source does.
        level: that w has as an expectile of what followed in this source; None where nothing limits free mass.
        w_p_value: that of a w which is high enough on the whole, corrected for all sources and clusters.
    """

    source: str
    episodes: int
    rows: int
    action_error: float | None
    value_error: float | None
    action_gain: float | None
    level: float | None
    w_p_value: float | None

    @property
    def w_too_low(self) -> bool:
        """Whether w is too low for this source on the whole."""
        return self.w_p_value is not None and self.w_p_value <= LEVEL


@dataclass(frozen=True)
class ClusterScores:
    """The two tests in one cluster of states.

    Attributes:
        centre: the mean observation of its rows.
        rows: held-out rows in it.
        source: the source with the most evidence that w is too low for it; None where too few episodes tell.
        level: that w has as an expectile of what followed in that source.
        w_p_value: that of a w which is high enough, corrected for all clusters and sources.
        bias: by how much masses that the maximum over sources selects are too large, on average over actions.
        bias_p_value: that of a bias which does not matter, corrected for all clusters and the whole.
    """

    centre: tuple[float, ...]
    rows: int
    source: str | None
    level: float | None
    w_p_value: float | None
    bias: float | None
    bias_p_value: float | None

    @property
    def w_too_low(self) -> bool:
        """Whether w is too low in this cluster."""
        return self.w_p_value is not None and self.w_p_value <= LEVEL

    @property
    def too_noisy(self) -> bool:
        """Whether the maximum over sources selects too much noise in this cluster."""
        return self.bias_p_value is not None and self.bias_p_value <= LEVEL


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Diagnostics(Result):
    """How far to trust a fit: its first member, scored on held-out episodes; see `FittedCeilings.diagnostics`.

    Attributes:
        columns: the names of the coordinates.
        expectile: the level that w was fitted at.
        sources: calibration by source.
        clusters: the tests by cluster of states.
        bias: by how much the masses that the maximum over sources selects are too large, on the whole.
        bias_p_value: that of a bias which does not matter.
        beyond: the share of held-out states that count as beyond the logs; None without any.
        beyond_best: the same for the states that followed the best action by the fit, where an agent would go.
        over_one: the share of held-out (state, action) in which masses of different sources add to more than 1.
        excess: by how much, on average over all of them.
        left: the share of the differences between states that is left to learn under the potential; None if the logs
            suggest none, and for floors, which are no potentials.
        coarse: whether these are ceilings with rewards above 0, which deep agents should not be
            shaped with so far. `as_plain` leaves it out: the settings of the fit say so already.
    """

    columns: tuple[str, ...]
    expectile: float
    sources: tuple[SourceScores, ...]
    clusters: tuple[ClusterScores, ...]
    bias: float | None
    bias_p_value: float | None
    beyond: float | None
    beyond_best: float | None
    over_one: float | None
    excess: float | None
    left: float | None
    coarse: bool = False

    @property
    def w_too_low(self) -> bool:
        """Whether w is too low for some source, on the whole or in some cluster."""
        return any(one.w_too_low for one in self.sources) or any(one.w_too_low for one in self.clusters)

    @property
    def too_noisy(self) -> bool:
        """Whether the maximum over sources selects too much noise, on the whole or in some cluster."""
        overall = self.bias_p_value is not None and self.bias_p_value <= LEVEL
        return overall or any(one.too_noisy for one in self.clusters)

    @property
    def verdict(self) -> str:
        """Whether the fit makes a useful potential, in words."""
        if self.left is None:
            return "Do not use it as a potential: it is a floor, or the logs suggest no differences between states."
        share = f"about {self.left:.0%}" if self.left < 10 else "more than 1000%"
        facts = (
            f"{share} of the differences in value between states are left to learn, if values are "
            "about what the logs suggest (phi = 0 leaves 100%)."
        )
        if self.coarse:
            why = "fits with rewards above 0 are coarse in this version."
            return f"{NOT_YET}: {why} {facts[0].upper()}{facts[1:]}"
        if self.left < HELPS:
            return f"Worth using as a potential: {facts}"
        if self.left <= DOUBTFUL:
            return f"Of little use as a potential: {facts} Compare with phi = 0."
        return f"Do not use it as a potential, use phi = 0: {facts}"

    def findings(self) -> list[str]:
        """Return what matters most, in sentences."""
        if not self.sources:
            return [self.verdict, "No episodes were held out: nothing tells how far to trust the fit."]
        return [self.verdict, self._about_w(), self._about_maxima(), self._about_reach()]

    def _about_w(self) -> str:
        tested = [one for one in self.clusters if one.w_p_value is not None]
        wrong = [one for one in tested if one.w_too_low]
        what = f"w, what unproven mass is worth at most (expectile {self.expectile:g})"
        if not tested:
            return f"Whether {what}, is high enough could not be tested."
        if not self.w_too_low:
            return f"In no cluster of states of {len(tested)} do held-out episodes show that {what}, is too low."
        parts = [f"on the whole the expectile {one.level:.3f} in {one.source}" for one in self.sources if one.w_too_low]
        if wrong:
            worst = min(wrong, key=lambda one: one.level or 0.0)
            parts.append(f"the expectile {worst.level:.3f} in {worst.source} around {self._place(worst)}")
        return (
            f"In {len(wrong)} of {len(tested)} clusters of states {what}, is too low: it is {', '.join(parts)}. "
            "Ceilings may lie below the optimum; more logs, a higher expectile or leaves of another size may help."
        )

    def _about_maxima(self) -> str:
        if self.bias is None:
            return "Whether the maximum over sources selects noise could not be tested."
        wrong = [one for one in self.clusters if one.too_noisy]
        size = f"Masses that the maximum over sources selects are too large by {self.bias:+.4f} on average over actions"
        if not self.too_noisy:
            return f"{size}: too little to matter, or to tell from chance."
        where = f", and by much in {len(wrong)} of {len(self.clusters)} clusters of states" if wrong else ""
        return (
            f"{size}{where} (more than {MOST_BIAS:g} is too much): shares are too noisy, or blurred, and ceilings too "
            "low. More rows in a leaf make shares less noisy, fewer less blurred; more logs help with both."
        )

    def _about_reach(self) -> str:
        beyond = "Unknown" if self.beyond is None else f"{self.beyond:.2%}"
        best = "" if self.beyond_best is None else f", and {self.beyond_best:.2%} of those that follow the best action"
        return (
            f"{beyond} of held-out states count as beyond the logs{best}. Masses of different sources add to more than "
            f"1 in {self.over_one or 0.0:.1%} of (state, action), by {self.excess or 0.0:.4f} on average."
        )

    def _place(self, cluster: ClusterScores) -> str:
        return ", ".join(f"{name} = {value:.3g}" for name, value in self._coordinates(cluster).items())

    def _coordinates(self, cluster: ClusterScores) -> dict[str, float]:
        """Return the centre of a cluster by name; numbers of a column of lists by the column and their place."""
        numbered = [f"{self.columns[0]}[{k}]" for k in range(len(cluster.centre))] if self.columns else []
        names = self.columns if len(self.columns) == len(cluster.centre) else numbered
        return dict(zip(names, cluster.centre, strict=False))

    HEADS = ("source", "episodes", "rows", "error of actions", "error of values", "log gain", "level of w")

    def summary(self) -> str:
        """Return the findings, and a table of the sources."""

        def shown(number: float | None, form: str = ".3f") -> str:
            return "" if number is None else f"{number:{form}}"

        lines = [
            [
                *(one.source, f"{one.episodes:,}", f"{one.rows:,}", shown(one.action_error), shown(one.value_error)),
                *(shown(one.action_gain, "+.3f"), shown(one.level, ".4f")),
            ]
            for one in self.sources
        ]
        table = [text_table(self.HEADS, lines, "Held-out episodes")] if lines else []
        return "\n".join([*(f"- {one}" for one in self.findings()), *table])

    def to_pandas(self) -> DataFrame:
        """Return a row per cluster of states."""
        plain = [
            self._coordinates(one)
            | {name: value for name, value in asdict(one).items() if name != "centre"}
            | {"w_too_low": one.w_too_low, "too_noisy": one.too_noisy}
            for one in self.clusters
        ]
        frame = data_frame(plain)
        frame.insert(0, "cluster", range(len(frame)))
        return frame

    def as_plain(self) -> dict[str, Any]:
        """Return everything but `coarse` as plain values, for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "coarse"}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], *, coarse: bool = False) -> Self:
        """Return what `as_plain` gave."""
        clusters = tuple(ClusterScores(**{**one, "centre": tuple(one["centre"])}) for one in plain["clusters"])
        sources = tuple(SourceScores(**one) for one in plain["sources"])
        columns = tuple(plain["columns"])
        return cls(**{**plain, "columns": columns, "sources": sources, "clusters": clusters}, coarse=coarse)

    def __repr__(self) -> str:
        rows = sum(one.rows for one in self.sources)
        failed = [text for text, bad in (("w too low", self.w_too_low), ("too noisy", self.too_noisy)) if bad]
        return f"Diagnostics({rows:,} held-out rows, {len(self.clusters)} clusters: {', '.join(failed) or 'passed'})"


def diagnostics_of(
    scores: Scores, rows: Transitions, settings: Settings, reach: Reach, best_action: Any, left: float | None
) -> Diagnostics:
    """Return what scores of held-out rows say.

    Args:
        scores: of the first member.
        rows: the logs.
        settings: what the fit was computed with.
        reach: how far the logs reach.
        best_action: a function from observations to the best action by the fit.
        left: see `share_left`.
    """
    w, maxima = level_of_w(scores, rows, settings.expectile), bias_of_maxima(scores, rows)
    seen = rows.observations[rows.state[scores.row]]
    clusters = []
    for c in range(len(maxima.bias)):
        own = scores.cluster == c
        tested = np.isfinite(w.p_value[c])
        i = int(np.argmin(np.where(tested, w.p_value[c], np.inf))) if tested.any() else None
        clusters.append(
            ClusterScores(
                centre=tuple(seen[own].mean(axis=0, dtype=np.float64).tolist()),
                rows=int(own.sum()),
                source=None if i is None else rows.sources[i],
                level=None if i is None else float(w.level[c, i]),
                w_p_value=None if i is None else float(w.p_value[c, i]),
                bias=_number(maxima.bias[c]),
                bias_p_value=_number(maxima.p_value[c]),
            )
        )
    after = rows.next_state[scores.row]
    followed = (after >= 0) & ~rows.terminated[scores.row]
    if followed.any():
        followed[followed] = best_action(seen[followed]) == rows.action[scores.row[followed]]
    return Diagnostics(
        columns=rows.columns,
        expectile=settings.expectile,
        sources=_sources(scores, rows, w.whole),
        clusters=tuple(clusters),
        bias=_number(maxima.overall),
        bias_p_value=_number(maxima.overall_p_value),
        beyond=_number(reach.missed),
        beyond_best=float(reach.excludes(rows.observations[after[followed]]).mean()) if followed.any() else None,
        over_one=float((scores.excess > ROUNDING).mean()) if len(scores.row) else None,
        excess=float(scores.excess.mean()) if len(scores.row) else None,
        left=left,
        coarse=settings.coarse,
    )


def _sources(scores: Scores, rows: Transitions, w_p_values: FloatArray) -> tuple[SourceScores, ...]:
    action_error, value_error = calibration_error(scores.action_bins), calibration_error(scores.value_bins)
    result = []
    for i, name in enumerate(rows.sources):
        own = rows.source[scores.row] == i
        gap = (scores.w - scores.target)[own]
        gap = gap[np.isfinite(gap)]
        gain = scores.gain[own & np.isfinite(scores.gain)]
        if own.any():
            result.append(
                SourceScores(
                    source=name,
                    episodes=len(np.unique(rows.episode[scores.row[own]])),
                    rows=int(own.sum()),
                    action_error=_number(action_error[i]),
                    value_error=_number(value_error[i]),
                    action_gain=float(gain.mean()) if len(gain) else None,
                    level=float(np.maximum(gap, 0).sum() / np.abs(gap).sum()) if gap.any() else None,
                    w_p_value=_number(w_p_values[i]),
                )
            )
    return tuple(result)


def share_left(ceiling: FloatArray, guess: FloatArray, spread: FloatArray) -> float | None:
    """Return the share of the differences between states that is left to learn; None if the logs suggest none.

    Args:
        ceiling: [steps left, observations].
        guess: best guesses, alike; the last row holds for all steps that are more.
        spread: [observations], the standard deviation of members.
    """
    suggested = np.minimum(guess[np.minimum(np.arange(len(ceiling)), len(guess) - 1)], ceiling)
    differences = _variance(suggested)
    if differences <= ROUNDING**2 * max(1e-300, float(np.square(suggested).max()), _variance(ceiling)):
        return None
    return math.sqrt((_variance(suggested - ceiling) + float(np.square(spread).mean())) / differences)


def _variance(values: FloatArray) -> float:
    """Return the mean variance over the states of a step."""
    return float(values.var(axis=1).mean())


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
