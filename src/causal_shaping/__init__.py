"""Reward shaping from confounded logs.

The demonstrator saw more than the log holds, so actions and outcomes share hidden causes. This package bounds
the optimal value from above all the same and shapes rewards with that ceiling.

- `load_world`, `list_worlds`, `World`: the paper's worlds, with demonstrators to collect logs from.
- `TabularCMDP`: the structural model, solved exactly.
- `read_logs`, `open_logs`, `count`: anybody's logs in, counts out, which add up; `inspect`: what they are worth, by
  `coverage`, `unseen_mass` and `contradictions`. `read_transitions`: logs of states that cannot be listed, as
  `Transitions`.
- `value_ceilings`, `value_floors`: bounds of the optimal value from counts; `provably_suboptimal`: what not to try;
  `sensitivity`: how all that moves with confounding.
- `Potential`, `load_potential`, `ShapeReward`, `VectorShapeReward`, `check_potential`: shaped rewards for any Gymnasium
  agent.
- `train`, `train_seeds`: Q-UCB and Q-UCB Shaping, compiled over a world or plain over any discrete environment.
- `Space`, `Logs`, `Counts`: what the stages hand to each other.

Names are loaded when they are first used, so that importing the package costs little more than NumPy. Importing it
registers the Gymnasium environments `causal_shaping/...`.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

from causal_shaping._leave import interrupt_quietly

interrupt_quietly()  # what follows takes most of the start

from causal_shaping._registration import register_environments  # noqa: E402
from causal_shaping._removed import REMOVED, explain_removed_names  # noqa: E402

_HOMES = {
    name.name: line.module
    for line in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(line, ast.ImportFrom)
    for name in line.names
}
"""Public name to the module that defines it, as the stub beside this file lists them."""

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("causal-shaping")
    if name in REMOVED:
        raise AttributeError(REMOVED[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'causal_shaping' has no attribute {name!r}")
    value = getattr(importlib.import_module(str(_HOMES[name])), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


register_environments()
explain_removed_names()
