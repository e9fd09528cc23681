"""The public names and where they live; `__init__.py` loads them from here when they are first used."""

from causal_shaping.beliefs import Posterior as Posterior, Trust as Trust, posterior as posterior
from causal_shaping.bounds import (
    Ceilings as Ceilings,
    Floors as Floors,
    Sensitivity as Sensitivity,
    provably_suboptimal as provably_suboptimal,
    sensitivity as sensitivity,
    value_ceilings as value_ceilings,
    value_floors as value_floors,
)
from causal_shaping.data import (
    Bins as Bins,
    Counts as Counts,
    Logs as Logs,
    ObservationPotential as ObservationPotential,
    Potential as Potential,
    Space as Space,
    Transitions as Transitions,
)
from causal_shaping.diagnose import (
    ContinuousInspection as ContinuousInspection,
    Contradiction as Contradiction,
    Contradictions as Contradictions,
    Coverage as Coverage,
    ExcessMass as ExcessMass,
    HiddenColumn as HiddenColumn,
    HiddenColumns as HiddenColumns,
    Inspection as Inspection,
    PersistenceTest as PersistenceTest,
    SourceCoverage as SourceCoverage,
    confounding_of as confounding_of,
    contradictions as contradictions,
    coverage as coverage,
    inspect as inspect,
    inspect_continuous as inspect_continuous,
    persistence_test as persistence_test,
    rarest_seen as rarest_seen,
    unseen_limit as unseen_limit,
    unseen_mass as unseen_mass,
)
from causal_shaping.errors import (
    ArgumentError as ArgumentError,
    AssumptionWarning as AssumptionWarning,
    CausalShapingError as CausalShapingError,
    ContradictionError as ContradictionError,
    DataError as DataError,
    DroppedEpisodesWarning as DroppedEpisodesWarning,
    FileError as FileError,
    MapError as MapError,
    MissingExtraError as MissingExtraError,
    ModelError as ModelError,
    ShapingWarning as ShapingWarning,
    UnknownLabelError as UnknownLabelError,
    UnknownNameError as UnknownNameError,
)
from causal_shaping.fitted import (
    FittedCeilings as FittedCeilings,
    FittedFloors as FittedFloors,
    FittedPotential as FittedPotential,
    fit_ceilings as fit_ceilings,
    fit_floors as fit_floors,
)
from causal_shaping.learners import (
    Rule as Rule,
    Run as Run,
    Seeds as Seeds,
    Worth as Worth,
    WorthWorld as WorthWorld,
    recommended_learner as recommended_learner,
    train as train,
    train_seeds as train_seeds,
)
from causal_shaping.logs import (
    LogTable as LogTable,
    count as count,
    open_logs as open_logs,
    read_logs as read_logs,
    read_transitions as read_transitions,
)
from causal_shaping.models import TabularCMDP as TabularCMDP, Values as Values
from causal_shaping.shaping import (
    CeilingEvidence as CeilingEvidence,
    ShapeReward as ShapeReward,
    VectorShapeReward as VectorShapeReward,
    check_potential as check_potential,
    load_potential as load_potential,
)
from causal_shaping.worlds import (
    ContinuousWorld as ContinuousWorld,
    Demonstrator as Demonstrator,
    World as World,
    list_worlds as list_worlds,
    load_world as load_world,
)
from causal_shaping.worlds.field import WindyField as WindyField

__version__: str
