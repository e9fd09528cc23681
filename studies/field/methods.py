"""How each method runs: `RUNNERS`, functions of a case's materials, a budget and a seed to the regret of each step.

The regret of a step is V*_h(s) - Q*_h(s, x), h counted to the horizon, for all methods alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.potential import Potential
from causal_shaping.errors import AssumptionWarning, ShapingWarning
from causal_shaping.learners import train
from causal_shaping.learners._posterior import enough_steps
from causal_shaping.learners.rules import POSTERIOR
from studies.field.materials import Materials
from studies.field.rivals import SETTINGS, run_psrl, run_q, run_ucbvi, vacuous
from studies.paper.baselines import behaviour_potential

Runner = Callable[[Materials, int, int], FloatArray]


def _sampling(materials: Materials, belief: Any, steps: int, seed: int, samples: bool | None = None) -> FloatArray:
    options: Any = {"learner": POSTERIOR, "steps": steps, "seed": seed, "step_indexed": True, "samples": samples}
    with warnings.catch_warnings(action="ignore", category=ShapingWarning):  # it drops logs, and goes on without
        run = train(materials.world, belief, **options)
    return np.diff(run.step_regret, prepend=0.0)


def _shaped(materials: Materials, potential: Any, steps: int, seed: int, **changes: Any) -> FloatArray:
    """Return the regret of Q-learning under a potential: in one table, or one per step where only time ends episodes.

    One table learns faster, but is of no use there: it looks beyond the time limit, where it is paid for ever.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        warnings.simplefilter("ignore", ShapingWarning)
        run = train(
            materials.world,
            potential,
            learner="q-ucb-shaping",
            steps=steps,
            seed=seed,
            step_indexed=_by_step(materials),
            record=True,
            **changes,
        )
    assert run.logs is not None
    return materials.gaps[run.logs.step, run.logs.state, run.logs.action]


def _by_step(materials: Materials) -> bool:
    return not materials.world.model.terminal.any()


def _no_logs(materials: Materials, steps: int, seed: int) -> FloatArray:
    """Plan as the learner with logs does: in the worlds of this study, that is the better way without logs, too."""
    world = materials.world
    samples = enough_steps(steps, world.space.is_admissible, world.space.is_terminal)
    return _sampling(materials, None, steps, seed, samples=samples)


def _posterior(materials: Materials, steps: int, seed: int) -> FloatArray:
    return _sampling(materials, materials.belief, steps, seed)


def _zero(materials: Materials, steps: int, seed: int) -> FloatArray:
    """A zero potential promises nothing, so that optimism is in the initial values."""
    initial = float(vacuous(materials.world)[0][0])
    return _shaped(materials, Potential.zero(materials.world), steps, seed, initial=initial, bonus=0.0, clip="none")


def _paper(materials: Materials, steps: int, seed: int) -> FloatArray:
    with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
        potential = materials.ceilings(method="paper", confounding=np.inf).potential(step_indexed=_by_step(materials))
    return _shaped(materials, potential, steps, seed, **SETTINGS["paper"])


def _behaviour(materials: Materials, steps: int, seed: int) -> FloatArray:
    options = dict(SETTINGS["behaviour"])
    potential = behaviour_potential(materials.logs, combine=options.pop("combine"))
    return _shaped(materials, potential, steps, seed, **options)


def _ceilings(materials: Materials, steps: int, seed: int) -> FloatArray:
    return _shaped(materials, materials.ceilings(), steps, seed, bonus=0.0, clip="zero")


def _guess(materials: Materials, steps: int, seed: int) -> FloatArray:
    potential = materials.belief.potential(step_indexed=_by_step(materials))
    return _shaped(materials, potential, steps, seed, bonus=0.0, clip="none")


def _psrl(materials: Materials, steps: int, seed: int) -> FloatArray:
    return run_psrl(materials.world, steps, seed, **SETTINGS["psrl"])


def _ucbvi(materials: Materials, steps: int, seed: int) -> FloatArray:
    return run_ucbvi(materials.world, steps, seed, **SETTINGS["ucbvi"])


def _naive_model(materials: Materials, steps: int, seed: int) -> FloatArray:
    return run_psrl(materials.world, steps, seed, materials.counts, **SETTINGS["naive-model"])


def _envelopes(materials: Materials, steps: int, seed: int) -> FloatArray:
    return run_ucbvi(materials.world, steps, seed, materials.pooled, **SETTINGS["envelopes"])


def _naive_q(materials: Materials, steps: int, seed: int) -> FloatArray:
    return run_q(materials.world, steps, seed, materials.logs, materials.pooled, **SETTINGS["naive-q"])


def _replay(materials: Materials, steps: int, seed: int) -> FloatArray:
    return run_q(materials.world, steps, seed, materials.logs, materials.pooled, **SETTINGS["replay"])


RUNNERS: Mapping[str, Runner] = {
    "no-logs": _no_logs,
    "psrl": _psrl,
    "ucbvi": _ucbvi,
    "zero": _zero,
    "paper": _paper,
    "behaviour": _behaviour,
    "naive-model": _naive_model,
    "naive-q": _naive_q,
    "replay": _replay,
    "envelopes": _envelopes,
    "ceilings": _ceilings,
    "guess": _guess,
    "posterior": _posterior,
}
