"""What logs suggest, inside what they prove: a posterior over worlds.

- `posterior`, `Posterior`: what is believed of do(x).
"""

from causal_shaping.beliefs.inference import Posterior as Posterior, posterior as posterior
