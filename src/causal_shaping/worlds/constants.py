"""Numbers of the worlds, each with its source: the paper, or the reason for our choice."""

# The paper's grid worlds

STEP_REWARD = -0.1
COIN_REWARD = 0.2
LAVA_REWARD = -1.0

RANDOM = 0.05
"""How often a demonstrator of the paper acts at random instead of by its rule."""

DEFAULT_HORIZON = 20
"""The horizon of a user's own map: that of the paper's LavaCross worlds."""

MOST_COINS = 12
"""The most coins that pay once, as each doubles the number of states."""

MOST_MAP_BYTES = 1_000_000
"""The largest file that is read as a map: hundreds of times the largest that would be solved."""

# The paper's walking robot

ROBOT_LENGTH = 10
ROBOT_HORIZON = 30
GOAL_REWARD = 1.0
RIGHT_STEP_REWARD = 1.0
WRONG_STEP_REWARD = -1.0

SMALL_STEP_REWARD = 0.5
"""Not in the paper's formula, but its table of optimal values needs it."""

# The windy field

NOISE_SD = 0.05
"""The standard deviation of a move: a twentieth of a cell, so that most moves end in one cell."""

STEP_LENGTH = 1.0
"""The length of a leg: one cell, as in the grid worlds."""

SMALLEST_STEP_LENGTH = 1e-6
"""Shorter legs are below the resolution of float32 coordinates."""

CHECKS = 2
"""Points of a leg, evenly spaced, at which a path is checked: its middle and its end."""

SMALLEST_DRAW = 1e-16
"""The least uniform number that becomes Gaussian noise: 0 would be a step without end."""

# Logs

BYTES_A_STEP = 120
"""The memory of a logged step of listed states until it is written, measured."""

BYTES_A_CONTINUOUS_STEP = 300
"""The memory of a logged step with coordinates until it is written, measured."""

EPISODES_AT_ONCE = 1024
"""Continuous worlds simulate this many episodes together; a change alters the logs of all seeds."""
