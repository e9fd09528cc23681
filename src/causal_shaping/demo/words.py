"""The demo in sentences: what the files cover, what they prove, and which agent did best."""

from __future__ import annotations

from collections.abc import Mapping

from causal_shaping.bounds import Ceilings
from causal_shaping.data.result import text_table
from causal_shaping.demo.agents import BELIEVES, NO_LOGS, OURS, Trained
from causal_shaping.diagnose import Inspection

EXAMPLES = 2
"""How many contradictions are shown: the output stays below forty lines."""

HELPS = {True: "expected to help", None: "of doubtful help", False: "not expected to help"}
"""`Ceilings.informative` in words."""


def coverage_words(inspection: Inspection) -> list[str]:
    """Return what the files cover and where they contradict each other, in at most eight lines."""
    heads = ("log", "rows", "trips", "cells visited", "mean score of a trip")
    cells = {item.source: str(item.states) for item in inspection.coverage}
    rows = []
    for one in inspection.episodes:
        numbers = [f"{one.steps:,}", f"{one.episodes:,}", cells[one.source]]
        rows.append([one.source, *numbers, f"{one.mean_return:.2f}"])
    lines = text_table(heads, rows).splitlines()
    if not inspection.contradictions:
        return [*lines, "No two logs contradict each other."]
    n = len(inspection.contradictions)
    lines.append(f"The logs contradict each other on {n} moves. The clearest:")
    for item in inspection.contradictions[:EXAMPLES]:
        first = f"in {item.first_share:.0%} of {item.first}'s tries"
        second = f"in {item.second_share:.0%} of {item.second}'s"
        lines.append(f"  {item.action} from {item.where} {item.outcome} {first}, and {second}")
    return lines


def ceiling_words(ceilings: Ceilings, confident: Ceilings) -> list[str]:
    """Return the range of the ceilings, and whether they are expected to help as a potential.

    Args:
        ceilings: estimated from the files.
        confident: the same with confidence.
    """
    values = ceilings.values[0][~ceilings.terminal]
    low, high = f"{values.min():.2f} from the worst cell", f"{values.max():.2f} from the best"
    helps = f"{HELPS[ceilings.informative]} as a potential for reward shaping"
    sure = f"With --confidence {confident.confidence:g} they hold with that probability under the"
    return [
        f"Ceilings on an agent's expected score: {low}, {high}.",
        f"Verdict: they are estimates, and {helps}.",
        f"{sure} assumptions that the command",
        f"ceilings prints, and are {HELPS[confident.informative]}.",
    ]


def agent_rows(agents: Mapping[str, Trained]) -> list[list[str]]:
    """Return each agent's name, regret and falls into the lava, with intervals."""
    text = "{:.1f} ({:.1f} to {:.1f})"
    return [
        [name, *(text.format(*interval) for interval in one.intervals().values())]
        for name, one in agents.items()
    ]


def conclusion(agents: Mapping[str, Trained], in_logs: float, for_agent: float) -> list[str]:
    """Return which agent did best, and why believing the logs misleads, in two sentences.

    Args:
        agents: the three agents.
        in_logs: how often the move beside the lava succeeds in the logs.
        for_agent: how often it succeeds for an agent.
    """
    regret = {name: one.intervals()["regret"] for name, one in agents.items()}
    best, second, *_ = sorted(regret, key=lambda name: regret[name])
    less = {
        name: f"{1 - regret[OURS][0] / regret[name][0]:.0%} less" for name in (NO_LOGS, BELIEVES)
    }
    falls = {name: f"{one.falls.mean():.0f}" for name, one in agents.items()}
    if regret[best][2] > regret[second][1]:
        who = f"the intervals of '{best}' and '{second}' overlap"
        first = f"No agent is clearly the best here: {who}."
    elif best == OURS:
        others = f"{less[NO_LOGS]} regret than '{NO_LOGS}', and {less[BELIEVES]} than '{BELIEVES}'"
        first = f"'{OURS}' has {others}."
    elif best == BELIEVES:
        both = f"({falls[BELIEVES]} falls into the lava, {falls[OURS]} with {OURS})"
        doubts = f"as {OURS} also doubts the logs where they are right"
        first = f"Believing the logs had the least regret here {both}, {doubts}."
    else:
        first = "The logs did not help here: the agent without them has the least regret."
    shares = f"in {in_logs:.0%} of the logged tries, but {for_agent:.0%} of an agent's"
    return [first, f"Beside the lava, `right` succeeds {shares}."]
