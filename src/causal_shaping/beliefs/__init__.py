"""What logs suggest, inside what they prove: a posterior over worlds.

- `posterior`, `Posterior`: what is believed of do(x).
- `Trust`: how far each source is trusted, and where.
"""

from causal_shaping.beliefs.inference import Posterior as Posterior, posterior as posterior
from causal_shaping.beliefs.trust import Trust as Trust
