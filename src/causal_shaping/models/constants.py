"""Numbers of the structural model: tolerances and limits, each with its reason."""

PROBABILITY_TOLERANCE = 1e-9
"""How far a sum of probabilities may be from 1: more than rounding, less than a typing error."""

END_TOLERANCE = 1e-8
"""Next states whose probabilities lack more than this to 1 may also be an end. It is more than the
tolerances of a policy and of the noise together."""

VALUE_TOLERANCE = 1e-13
"""Sweeps stop at a change of this share of the largest value so far: some hundred roundings."""

MOST_SWEEPS = 10_000
"""After this many sweeps an undiscounted optimum is slow to reach, or does not exist."""

LARGEST_RATE = 1.0 - 1e-4
"""Policy iteration allows for the rounding of values as if each was a sum of 10,000 rewards."""

APPROACH = 1.0 - 1e-9
"""Sweeps approach a solution if their second half shrinks the distance by at least this factor."""

TIE_DECIMALS = 9
"""Action values are rounded to this many decimals before the first best action is taken."""
