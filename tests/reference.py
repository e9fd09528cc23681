"""Counting the slow, obvious way, and counts as something that can be compared."""

from collections import defaultdict

from causal_shaping.data.space import UNKNOWN


def counted(logs, step_indexed=False):
    """Count rows by label: {(source, [step,] state, action, next state, terminated, reward): n}."""
    found = defaultdict(int)
    for row in range(len(logs)):
        found[_key(logs, row, logs.source, step_indexed, logs.reward)] += 1
    return dict(found)


def by_label(counts):
    """Return the entries of counts with rewards in the key in the same form."""
    assert counts.discrete_rewards
    result = {}
    for i in range(len(counts)):
        assert counts.reward_sum[i] == counts.n[i] * counts.reward_min[i]
        source = counts.sources[counts.source[i]]
        result[_key(counts, i, source, counts.step_indexed, counts.reward_min)] = int(counts.n[i])
    return result


def _key(held, i, source, step_indexed, reward):
    space, after = held.space, held.next_state[i]
    return (
        source,
        *([int(held.step[i])] if step_indexed else []),
        space.states[held.state[i]],
        space.actions[held.action[i]],
        None if after == UNKNOWN else space.states[after],
        bool(held.terminated[i]),
        float(reward[i]),
    )
