"""Reward shaping from confounded logs.

The demonstrator saw more than the log holds, so actions and outcomes share hidden causes. This package bounds
the optimal value from above all the same and shapes rewards with that ceiling.

- `load_world`, `list_worlds`, `World`: the paper's worlds, with demonstrators to collect logs from.
- `TabularCMDP`: the structural model, solved exactly.
- `read_logs`, `open_logs`, `count`: anybody's logs in, counts out; `coverage`, `unseen_mass`, `contradictions`: what
  the counts are worth.
- `value_ceilings`, `value_floors`: bounds of the optimal value from counts; `provably_suboptimal`: what not to try;
  `sensitivity`: how all that moves with confounding.
- `Potential`, `ShapeReward`, `VectorShapeReward`, `check_potential`: shaped rewards for any Gymnasium agent.
- `train`, `train_seeds`: Q-UCB and Q-UCB Shaping, compiled over a world or plain over any discrete environment.
- `causal_shaping.theory`: the paper's definitions, lemmas and theorems as functions, as printed and corrected.
- `Space`, `Logs`, `Counts`: what the stages hand to each other.

Importing the package registers the Gymnasium environments `causal_shaping/...`.
"""

from causal_shaping.baselines import behaviour_potential
from causal_shaping.bounds import (
    AssumptionWarning,
    Ceilings,
    Floors,
    contradictions,
    coverage,
    provably_suboptimal,
    sensitivity,
    unseen_mass,
    value_ceilings,
    value_floors,
)
from causal_shaping.cmdp import TabularCMDP, Values
from causal_shaping.data import Bins, Counts, Logs, Space
from causal_shaping.errors import CausalShapingError
from causal_shaping.learners import Rule, Run, train, train_seeds
from causal_shaping.logs import LogTable, count, export_minari, open_logs, read_counts, read_logs
from causal_shaping.potential import Potential, ShapingWarning
from causal_shaping.shaping import ShapeReward, VectorShapeReward, check_potential
from causal_shaping.worlds import Demonstrator, World, list_worlds, load_world

__version__ = "0.1.0"

__all__ = [
    "AssumptionWarning",
    "Bins",
    "CausalShapingError",
    "Ceilings",
    "Counts",
    "Demonstrator",
    "Floors",
    "LogTable",
    "Logs",
    "Potential",
    "Rule",
    "Run",
    "ShapeReward",
    "ShapingWarning",
    "Space",
    "TabularCMDP",
    "Values",
    "VectorShapeReward",
    "World",
    "behaviour_potential",
    "check_potential",
    "contradictions",
    "count",
    "coverage",
    "export_minari",
    "list_worlds",
    "load_world",
    "open_logs",
    "provably_suboptimal",
    "read_counts",
    "read_logs",
    "sensitivity",
    "train",
    "train_seeds",
    "unseen_mass",
    "value_ceilings",
    "value_floors",
]
