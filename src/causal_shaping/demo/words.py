"""The demo in sentences: what the files cover, what they prove, and which agent did best."""

from __future__ import annotations

from collections.abc import Mapping

from causal_shaping.bounds import Ceilings
from causal_shaping.data.result import text_table
from causal_shaping.demo.agents import BELIEVES, NO_LOGS, OURS, Trained
from causal_shaping.diagnose import Inspection

EXAMPLES = 2
"""So many contradictions are shown."""


def coverage_words(found: Inspection) -> list[str]:
    """Return what the files cover and where they contradict each other, in at most eight lines."""
    cells = {item.source: str(item.states) for item in found.coverage}
    rows = [
        [one.source, f"{one.steps:,}", f"{one.episodes:,}", cells[one.source], f"{one.mean_return:.2f}"]
        for one in found.episodes
    ]
    heads = ("log", "rows", "trips", "cells visited", "mean score of a trip")
    lines = text_table(heads, rows).splitlines()
    if not found.contradictions:
        return [*lines, "No two logs contradict each other."]
    lines.append(f"The logs contradict each other on {len(found.contradictions)} moves. The clearest:")
    lines += [
        f"  {item.action} from {item.where} {item.outcome} in {item.first_share:.0%} of {item.first}'s tries, and in "
        f"{item.second_share:.0%} of {item.second}'s"
        for item in found.contradictions[:EXAMPLES]
    ]
    return lines


def ceiling_words(ceilings: Ceilings, sure: Ceilings) -> list[str]:
    """Return the range of the ceilings, and whether they are expected to help in shaping the reward.

    Args:
        ceilings: estimated from the files.
        sure: the same with confidence.
    """
    values = ceilings.values[0][~ceilings.terminal]
    helps = {True: "expected to help", None: "of doubtful help", False: "not expected to help"}
    return [
        f"Ceilings on an agent's expected score: {values.min():.2f} from the worst cell, "
        f"{values.max():.2f} from the best.",
        f"Verdict: they are estimates, and {helps[ceilings.informative]} as a potential for reward shaping.",
        f"With --confidence {sure.confidence:g} they hold with that probability under the assumptions that the command",
        f"ceilings prints, and are {helps[sure.informative]}.",
    ]


def agent_rows(agents: Mapping[str, Trained]) -> list[list[str]]:
    """Return a row for each agent: its name, its regret and its falls into the lava, with intervals."""
    return [
        [name, *("{:.1f} ({:.1f} to {:.1f})".format(*interval) for interval in one.intervals().values())]
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
    less = [f"{1 - regret[OURS][0] / regret[other][0]:.0%} less" for other in (NO_LOGS, BELIEVES)]
    if regret[best][2] > regret[second][1]:
        first = f"No agent is clearly the best here: the intervals of '{best}' and '{second}' overlap."
    elif best == OURS:
        first = f"'{OURS}' has {less[0]} regret than '{NO_LOGS}', and {less[1]} than '{BELIEVES}'."
    elif best == BELIEVES:
        believing, ours = (f"{agents[name].falls.mean():.0f}" for name in (BELIEVES, OURS))
        first = (
            f"Believing the logs had the least regret here ({believing} falls into the lava, {ours} with {OURS}), "
            f"as {OURS} also doubts the logs where they are right."
        )
    else:
        first = "The logs did not help here: the agent without them has the least regret."
    return [
        first,
        f"Beside the lava, `right` succeeds in {in_logs:.0%} of the logged tries, but {for_agent:.0%} of an agent's.",
    ]
