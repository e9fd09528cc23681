"""How often the two tests of a fit by held-out episodes alarm: fits as they are by default, and fits that are broken.

Test B asks whether w is too low. A broken fit has w at the expectile 0.8 and says 0.99. Test A asks whether the maximum
over sources selects noise. A broken fit has leaves of 3 rows. Worlds and seeds are others than those with which the
limits of the tests were chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.calibration.continuous_worlds import WORLDS, load

ROWS, STEPS, SEEDS, LEVEL = 10_000, 10, range(100, 105), 0.05
FITTED = tuple(name for name in WORLDS if name != "windy-field")


def parts() -> list[str]:
    """Return worlds and seeds."""
    return [f"{name}; {seed}" for name in FITTED for seed in SEEDS]


def run_part(part: str) -> dict[str, Any]:
    """Return what the tests find in one fit as it is, and in two that are broken."""
    from causal_shaping.logs.transitions import read_transitions

    name, seed = part.split("; ")
    world = load(name)
    logs = [world.collect(source, ROWS, seed=int(seed)) for source in world.demonstrators]
    rows = read_transitions(logs, state=list(world.columns))
    options: Any = {"reward_bound": world.reward_max, "horizon": STEPS, "members": 1, "seed": int(seed)}
    return {
        "as it is": both_tests(rows, options),
        "w too low": both_tests(rows, options | {"expectile": 0.8}, declared=0.99),
        "leaves of 3": both_tests(rows, options | {"leaf": 3}),
    }


def both_tests(rows: Any, options: Mapping[str, Any], declared: float = 0.99) -> dict[str, Any]:
    """Return the least p-values of both tests in a fit, and the bias of maxima."""
    from causal_shaping.fitted import fitting
    from causal_shaping.fitted._held_out import bias_of_maxima, level_of_w, score
    from causal_shaping.fitted._members import held_out, kept_at
    from causal_shaping.fitted._steps import rule_of, sweep
    from causal_shaping.fitted.settings import Settings

    chosen = Settings(**options).checked(rows.sources)
    held = held_out(rows, chosen)
    model = fitting.forest_of(rows, np.where(held, 0.0, 1.0), chosen, 0)
    found = sweep(model, rows, chosen, kept_at(rows, held, chosen)[0], False, progress=lambda *_: None, what="")
    scores = score(model, rows, held, found.targets, chosen, rule_of(chosen, rows.sources, chosen.horizon or STEPS))
    w, maxima = level_of_w(scores, rows, declared), bias_of_maxima(scores, rows)
    return {
        "A": float(np.nanmin([*maxima.p_value, maxima.overall_p_value])),
        "B": float(np.nanmin([*w.p_value.ravel(), *w.whole])),
        "bias": maxima.overall,
        "largest bias of a cluster": float(np.nanmax(maxima.bias)),
    }


def alarms(parts: Mapping[str, Mapping[str, Any]], name: str, fit: str, test: str) -> tuple[int, int]:
    """Return how many fits of a world, or of all, raise an alarm, and of how many."""
    held = [figures[fit][test] for part, figures in parts.items() if part.startswith(name)]
    return sum(p <= LEVEL for p in held), len(held)


def table(parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table for the documentation: alarms by world."""
    columns = (("as it is", "B"), ("w too low", "B"), ("as it is", "A"), ("leaves of 3", "A"))
    lines = [
        "| World | w too low: as it is | w at 0.8 | noise: as it is | leaves of 3 rows |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in FITTED:
        if any(part.startswith(f"{name};") for part in parts):
            cells = ["{} of {}".format(*alarms(parts, f"{name};", *column)) for column in columns]
            lines.append(f"| {' | '.join([name, *cells])} |")
    return lines


def holds(parts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether fits as they are rarely alarm, within two standard errors, and most that are broken do."""
    print("\n".join(table(parts)))
    (b, n), (a, _) = (alarms(parts, "", "as it is", test) for test in "BA")
    most = LEVEL * n + 2 * (LEVEL * (1 - LEVEL) * n) ** 0.5
    found = min(alarms(parts, "", "w too low", "B")[0], alarms(parts, "", "leaves of 3", "A")[0])
    return max(a, b) <= most and found > n / 2
