"""What the study found, in plain words, computed from the results: `findings`, a heading and a paragraph each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from causal_shaping.worlds.world import COINS
from studies.paper.plan import BASELINE, METHODS, PRINTED, RAREST
from studies.paper.run import Results
from studies.paper.tables import AIM, INFORMED, relative_regret

NEAR_PRINT = 0.10
"""A share that differs from the printed one by no more than this has come out."""


def findings(results: Results) -> Iterator[tuple[str, str]]:
    """Yield what was found: a heading and a paragraph each; only what the results have numbers for."""
    for find in (_reproduced, _zero_is_enough, _earns, _misled, _violated):
        found = find(results)
        if found is not None:
            yield found


def standing_worlds(results: Results) -> list[str]:
    """Return the worlds that there are runs of, with standing coins."""
    return [world for world, coins in results.variants if coins == "standing"]


def _regrets(results: Results, method: str) -> dict[str, float]:
    return {
        world: float(results.values(world, method, "regret").mean())
        for world in standing_worlds(results)
        if results.runs_of(world, method)
    }


def _reproduced(results: Results) -> tuple[str, str] | None:
    cells = [
        (method, world, float(results.values(world, method, "argmax_match").mean()) - printed)
        for method, row in PRINTED.items()
        for world, printed in row.items()
        if results.runs_of(world, method)
    ]
    own = [difference for method, _, difference in cells if method == "causal-bound"]
    if not own:
        return None
    near = sum(abs(difference) <= NEAR_PRINT for *_, difference in cells)
    far = [f"{METHODS[m].title} in {w} ({d:+.2f})" for m, w, d in cells if abs(d) > NEAR_PRINT]
    text = (
        f"Of {len(cells)} cells of the paper's table of optimal ratios {near} come out within {NEAR_PRINT:.2f}. Its "
        f"own method differs by {min(own):+.2f} to {max(own):+.2f}. "
    )
    text += f"Further away: {'; '.join(far)}; the differences page has the experiments." if far else ""
    met = min(own) >= -NEAR_PRINT
    return ("The paper's table comes out" if met else "The paper's table does not come out here"), text.strip()


def _zero_is_enough(results: Results) -> tuple[str, str] | None:
    zero, bound, vanilla = (_regrets(results, name) for name in (BASELINE, "causal-bound", "no-shaping"))
    shared = [world for world in zero if world in bound and world in vanilla]
    if not shared:
        return None
    gains = ", ".join(f"{world} {zero[world]:.0f} against {bound[world]:.0f}" for world in shared)
    lost = math.floor(min(vanilla[world] / max(zero[world], bound[world]) for world in shared))
    if lost < 2:
        return None
    return (
        "Most of the published gain needs no logs",
        f"The same learner with a potential of zero, which looks at no data at all, has a regret of {gains} with the "
        f"published bound. Both are at least {lost} times better than Q-UCB: what helps is a table that starts at "
        "zero and a bonus that is gone with it, not the bound, which is nearly flat.",
    )


def _earns(results: Results) -> tuple[str, str] | None:
    lines = []
    for method, coins in itertools.product(INFORMED, COINS):
        shares = [
            relative_regret(results, world, coins, method, BASELINE)[0]
            for world, rule in results.variants
            if rule == coins and results.runs_of(world, method, coins) and results.runs_of(world, BASELINE, coins)
        ]
        if shares:
            span, met = f"{min(shares):.2f} to {max(shares):.2f}", sum(share <= AIM for share in shares)
            lines.append(f"{METHODS[method].title}, coins {coins}: {span} ({met} of {len(shares)} worlds).")
    if not lines:
        return None
    head = f"Regret as a share of the zero potential's, and in how many worlds that is at most {AIM}."
    return "Where confounded logs earn their keep", " ".join([head, *lines])


def _misled(results: Results) -> tuple[str, str] | None:
    zero, values = _regrets(results, BASELINE), _regrets(results, "avg")
    worse = {world: values[world] / zero[world] for world in zero if world in values and values[world] > zero[world]}
    if not worse:
        return None
    text = ", ".join(f"{world} {share:.0f}" for world, share in worse.items())
    return (
        "What demonstrators earned misleads",
        f"Shaping with their average return multiplies the regret of a zero potential in {len(worse)} of {len(zero)} "
        f"worlds: by {text}. They saw the wind; the agent does not.",
    )


def _violated(results: Results) -> tuple[str, str] | None:
    sentences = []
    for name, words in (
        ("paper", "The published bound"),
        ("joint", "The plug-in joint ceiling"),
        ("joint-sure", f"With confidence, and no outcome rarer than {RAREST:.0%} of a state's visits, it"),
    ):
        rows = [row for row in results.potentials if row["name"] == name]
        if rows:
            broken = sum(row["violations_all_steps"] > 0 for row in rows)
            sentences.append(
                f"{words} lies below the optimal value of some state and step in {broken} of {len(rows)} sets of logs."
            )
    return ("Which bounds hold", " ".join(sentences)) if sentences else None
