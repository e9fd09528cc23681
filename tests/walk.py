"""A small environment of somebody else's."""

import gymnasium as gym


class Walk(gym.Env):
    """From 0 to 5, where it ends; of its actions the last is the cheapest. Observations may start at any number."""

    COSTS = (-1.0, -0.5, -0.1)

    def __init__(self, start=0, space=None):
        self.start = start
        self.observation_space = gym.spaces.Discrete(6, start=start)
        self.action_space = gym.spaces.Discrete(len(self.COSTS))
        if space is not None:
            self.space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.start, {}

    def step(self, action):
        self.place += int(self.np_random.random() < 0.7)
        return self.start + self.place, self.COSTS[action], self.place == 5, False, {}
