"""What logs are worth, in numbers, words and a picture: the job of `causal-shaping inspect`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from causal_shaping.bounds.support import sources_without_terminations
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.diagnose.diagnostics import (
    FEW_VISITS,
    LEVEL,
    Contradiction,
    Coverage,
    comparable,
    contradictions,
    coverage,
    unseen_mass,
)
from causal_shaping.logs.summary import Summary
from causal_shaping.logs.table import Dropped

BELIEVABLE = 0.01
"""Unseen outcome mass up to this is called small."""


@dataclass(frozen=True, eq=False)
class Inspection:
    """What was found in logs; see `inspect_counts`."""

    counts: Counts
    summaries: list[Summary]
    coverage: list[Coverage]
    unseen: FloatArray
    contradictions: list[Contradiction]
    dropped: Mapping[str, Dropped]

    def findings(self) -> list[str]:
        """Return what matters most, in sentences."""
        space = self.counts.space
        known = ~np.isnan(self.unseen)
        result = [
            f"{known.sum()} of {len(space.states)} states are left by at least one source; "
            f"{len(space.states) - known.sum()} are terminal or were never left."
        ]
        best = max(self.coverage, key=lambda item: item.action_share)
        result.append(
            f"A confounded source proves at most what it does: {best.source} takes its most frequent action in "
            f"{best.action_share:.0%} of its steps, the most of all."
        )
        for item in self.coverage:
            if item.untried:
                result.append(
                    f"{item.source} never tried {len(item.untried)} (state, action) of the states that it left."
                )
            if item.few:
                result.append(f"{item.source} left {len(item.few)} states fewer than {FEW_VISITS} times.")
        if known.any():
            mean = float(np.nanmean(self.unseen))
            worst = int(np.nanargmax(self.unseen))
            verdict = "believable" if self.unseen[worst] <= BELIEVABLE else "doubtful where this is high"
            result.append(
                f"About {mean:.2%} of what follows a state was probably never seen (worst: {self.unseen[worst]:.1%} in "
                f"{space.states[worst]}). That every possible outcome was seen at least once is {verdict}."
            )
        else:
            result.append("No row tells what followed it: nothing can be bounded. Are next states or flags missing?")
        result += [
            f"{summary.unknown} episodes of {summary.source} stop without a word on whether they ended; their last "
            "outcome is unknown."
            for summary in self.summaries
            if summary.unknown
        ]
        silent = sources_without_terminations(self.counts)
        if silent:
            result.append(
                f"No episode of {', '.join(self.counts.sources[i] for i in silent)} is known to have ended: wherever "
                "one stops, anything may have followed. Pass the column that says whether it ended, --terminated "
                "COLUMN."
            )
        if len(self.counts.sources) == 1:
            result.append("With one source there is nothing to compare: confounding cannot be tested for.")
        elif not self.contradictions:
            compared, both = comparable(self.counts)
            left_out = (
                f" Compared were {compared} of {both} state-actions that two sources took; the others hold rows that "
                "do not tell what followed."
                if compared < both
                else ""
            )
            result.append(
                f"No two sources contradict each other. That does not prove that they are unconfounded.{left_out}"
            )
        else:
            result.append(f"{len(self.contradictions)} contradictions between sources:")
            result += [str(item) for item in self.contradictions]
        return result

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values, for other programs."""
        states = self.counts.space.states
        return {
            "states": len(states),
            "actions": list(self.counts.space.actions),
            "sources": [
                dataclasses.asdict(summary) | dataclasses.asdict(covered)
                for summary, covered in zip(self.summaries, self.coverage, strict=True)
            ],
            "unseen_outcome_mass": [
                {"state": state, "mass": float(mass)}
                for state, mass in zip(states, self.unseen, strict=True)
                if not np.isnan(mass)
            ],
            "dropped": {origin: dataclasses.asdict(dropped) for origin, dropped in self.dropped.items()},
            "contradictions": [
                dataclasses.asdict(item)
                | {"text": str(item), "confounding": "inf" if item.confounding == math.inf else item.confounding}
                for item in self.contradictions
            ],
            "findings": self.findings(),
        }


def inspect_counts(
    counts: Counts, summaries: list[Summary], level: float = LEVEL, dropped: Mapping[str, Dropped] | None = None
) -> Inspection:
    """Return what counts and summaries of the same logs are worth; `dropped` is what was left out of them."""
    by_source = {summary.source: summary for summary in summaries}
    return Inspection(
        counts=counts,
        summaries=[by_source[source] for source in counts.sources],
        coverage=coverage(counts),
        unseen=unseen_mass(counts),
        contradictions=contradictions(counts, level) if len(counts.sources) > 1 else [],
        dropped=dropped or {},
    )
