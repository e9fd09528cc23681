"""How often the two tests of a fit by held-out episodes alarm: fits as they are by default, and fits that are broken.

Test B asks whether w is too low. A broken fit has w at the expectile 0.8 and says 0.99. Test A asks whether the maximum
over sources selects noise. A broken fit has leaves of 3 rows. Worlds and seeds are others than those with which the
limits of the tests were chosen.
"""

import numpy as np

from causal_shaping.fitted import fitting
from causal_shaping.fitted._held_out import bias_of_maxima, level_of_w, score
from causal_shaping.fitted._members import held_out, kept_at
from causal_shaping.fitted._steps import rule_of, sweep
from causal_shaping.fitted.settings import Settings
from causal_shaping.logs.transitions import read_transitions
from studies.calibration.continuous_tests import WORLDS, load
from studies.calibration.listed_tests import LEVEL, rare

ROWS, STEPS, SEEDS = 10_000, 10, range(100, 105)
FITTED = tuple(name for name in WORLDS if name != "windy-field")
PARTS = [f"{name}; {seed}" for name in FITTED for seed in SEEDS]
FITS = {"as it is": {}, "w too low": {"expectile": 0.8}, "leaves of 3": {"leaf": 3}}
COLUMNS = {
    "w too low: as it is": ("as it is", "B"),
    "w at 0.8": ("w too low", "B"),
    "noise: as it is": ("as it is", "A"),
    "leaves of 3 rows": ("leaves of 3", "A"),
}


def run_part(part):
    """Return what the tests find in one fit as it is, and in two that are broken."""
    name, seed = part.split("; ")
    world = load(name)
    logs = [world.collect(source, ROWS, seed=int(seed)) for source in world.demonstrators]
    rows = read_transitions(logs, state=list(world.columns))
    options = {"reward_bound": world.reward_max, "horizon": STEPS, "members": 1, "seed": int(seed)}
    return {fit: both_tests(rows, options | changes) for fit, changes in FITS.items()}


def both_tests(rows, options):
    """Return the least p-values of both tests in a fit, and the bias of maxima."""
    chosen = Settings(**options).checked(rows.sources)
    held = held_out(rows, chosen)
    model = fitting.forest_of(rows, np.where(held, 0.0, 1.0), chosen, 0)
    found = sweep(model, rows, chosen, kept_at(rows, held, chosen)[0], False, progress=lambda *_: None, what="")
    scores = score(model, rows, held, found.targets, chosen, rule_of(chosen, rows.sources, STEPS))
    w, maxima = level_of_w(scores, rows, 0.99), bias_of_maxima(scores, rows)
    return {
        "A": float(np.nanmin([*maxima.p_value, maxima.overall_p_value])),
        "B": float(np.nanmin([*w.p_value.ravel(), *w.whole])),
        "bias": maxima.overall,
        "largest bias of a cluster": float(np.nanmax(maxima.bias)),
    }


def alarms(parts, world, fit, test):
    """Return how many fits of a world, or of all, raise an alarm."""
    held = [figures[fit][test] for part, figures in parts.items() if part.startswith(world)]
    return {"logs": len(held), "alarms": sum(p <= LEVEL for p in held)}


def holds(parts):
    """The two tests of a fit alarm in about 5% of fits as they are, and in most of those that are broken."""
    print(f"| World | {' | '.join(COLUMNS)} |")
    for name in FITTED:
        found = [alarms(parts, f"{name};", *column) for column in COLUMNS.values()]
        print(f"| {name} | {' | '.join('{alarms} of {logs}'.format(**one) for one in found)} |")
    low, broken_w, noise, broken_leaves = (alarms(parts, "", *column) for column in COLUMNS.values())
    found = min(broken_w["alarms"], broken_leaves["alarms"])
    return rare(low, 2) and rare(noise, 2) and found > low["logs"] / 2
