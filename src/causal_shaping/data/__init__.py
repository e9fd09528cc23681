"""The data that every stage hands to the next: frozen and validated, without input or output.

- `Space`: the states and actions, their labels and order; `Bins`: how real numbers become labels.
- `Logs`: the trajectories of one source.
- `Counts`: the sufficient statistics of the logs of one or several sources.
- `Transitions`: the trajectories of several sources whose states cannot be listed.
- `Potential`: what shapes the reward; `ObservationPotential`: the same for observations that cannot
  be listed.

States and actions are labels for people and files, and positions in the `Space` inside arrays.
`result` has what all results share, `columns` turns positions into columns of labels and back.
"""

from causal_shaping.data.counts import Counts
from causal_shaping.data.logs import Logs
from causal_shaping.data.observed import ObservationPotential
from causal_shaping.data.potential import Potential
from causal_shaping.data.space import Bins, Space
from causal_shaping.data.transitions import Transitions

__all__ = ["Bins", "Counts", "Logs", "ObservationPotential", "Potential", "Space", "Transitions"]
