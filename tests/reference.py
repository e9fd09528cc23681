"""Counting the slow, obvious way, and counts as something that can be compared."""

from collections import defaultdict

from causal_shaping.data.space import UNKNOWN


def counted(logs, step_indexed=False):
    """Count rows by label: {(source, [step,] state, action, next state, terminated, reward): n}."""
    found = defaultdict(int)
    states, actions = logs.space.states, logs.space.actions
    for row in range(len(logs)):
        after = logs.next_state[row]
        key = (
            logs.source,
            *([int(logs.step[row])] if step_indexed else []),
            states[logs.state[row]],
            actions[logs.action[row]],
            None if after == UNKNOWN else states[after],
            bool(logs.terminated[row]),
            float(logs.reward[row]),
        )
        found[key] += 1
    return dict(found)


def by_label(counts):
    """Return the entries of counts with rewards in the key in the same form."""
    states, actions = counts.space.states, counts.space.actions
    assert counts.discrete_rewards
    result = {}
    for i in range(len(counts)):
        after = counts.next_state[i]
        key = (
            counts.sources[counts.source[i]],
            *([int(counts.step[i])] if counts.step_indexed else []),
            states[counts.state[i]],
            actions[counts.action[i]],
            None if after == UNKNOWN else states[after],
            bool(counts.terminated[i]),
            float(counts.reward_min[i]),
        )
        assert counts.reward_sum[i] == counts.n[i] * counts.reward_min[i]
        result[key] = int(counts.n[i])
    return result
