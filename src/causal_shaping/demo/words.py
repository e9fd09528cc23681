"""The demo in sentences: what the files cover, what they prove, and which agent did best."""

from __future__ import annotations

from collections.abc import Mapping

from causal_shaping.bounds import Ceilings
from causal_shaping.data.result import text_table
from causal_shaping.demo.agents import BELIEVES, NO_LOGS, OURS, Trained
from causal_shaping.diagnose import Inspection
from causal_shaping.learners.intervals import Interval

EXAMPLES = 2
"""So many contradictions are shown."""


def coverage_words(found: Inspection) -> list[str]:
    """Return what the files cover and where they contradict each other, in at most eight lines."""
    cells = {item.source: item.states for item in found.coverage}
    rows = [
        [
            item.source,
            f"{item.steps:,}",
            f"{item.episodes:,}",
            f"{cells[item.source]}",
            f"{item.mean_return:.2f}",
        ]
        for item in found.episodes
    ]
    heads = ("file", "rows", "trips", "cells visited", "score of a trip")
    lines = text_table(heads, rows).splitlines()
    if not found.contradictions:
        return [*lines, "No two files contradict each other."]
    lines.append(f"The files contradict each other {len(found.contradictions)} times. The clearest:")
    lines += [
        f"  {item.action} in {item.where} {item.outcome} in {item.first_share:.0%} of the rows of "
        f"{item.first}, and {item.second_share:.0%} of the rows of {item.second}"
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
    words = {True: "help", None: "may or may not help", False: "do not help"}
    return [
        "Ceilings: without the wind nobody can expect a score of more than "
        f"{values.min():.2f} from the worst cell, {values.max():.2f} from the best.",
        f"Verdict: used to shape the reward, these ceilings {words[ceilings.informative]}. They are estimates.",
        f"With --confidence {sure.confidence:g} they are guaranteed, if what `ceilings` assumes holds, and "
        f"{words[sure.informative]}.",
    ]


def agent_rows(agents: Mapping[str, Trained]) -> list[list[str]]:
    """Return a row for each agent: its name, its regret and its falls into the lava, with intervals."""

    def shown(interval: Interval) -> str:
        return "{:.3g} ({:.3g} to {:.3g})".format(*interval)

    return [[name, shown(one.regret_interval()), shown(one.lava_interval())] for name, one in agents.items()]


def conclusion(agents: Mapping[str, Trained], in_files: float, for_agent: float) -> list[str]:
    """Return which agent did best, and why, in two sentences.

    Args:
        agents: the three agents.
        in_files: how often the move beside the lava succeeds in the files.
        for_agent: how often it succeeds for an agent.
    """
    regret = {name: one.regret_interval()[0] for name, one in agents.items()}
    falls = {name: one.lava_interval()[0] for name, one in agents.items()}
    best = min(regret, key=lambda name: regret[name])
    misled = (
        f"In the files, right beside the lava succeeds {100 * in_files:.0f} times in 100; for an agent "
        f"{100 * for_agent:.0f} times."
    )
    if best == NO_LOGS:
        return [f"Here the logs did not help: the agent without them has the least regret. {misled}"]
    if best == BELIEVES:
        why = "The files are right where it matters, and our agent took steps to find that out."
        return [f"Here believing the logs was best. {why}", misled]
    return [
        f"Our agent has {1 - regret[OURS] / regret[BELIEVES]:.0%} less regret than the one that believes the logs, "
        f"and falls {falls[OURS]:.0f} times, not {falls[BELIEVES]:.0f}.",
        misled,
    ]
