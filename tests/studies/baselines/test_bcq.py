"""BCQ: the fixed point of the pooled logs among the actions that were taken often enough."""

import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.data.space import UNKNOWN
from studies.paper.baselines._network import Network, Rows, Settings
from studies.paper.baselines.bcq import train_bcq


def steps_of(space, rows, source="hand"):
    """Logs of episodes of one step: rows of (state, action, reward, next state, terminated)."""
    state, action, reward, after, terminated = (np.array(column) for column in zip(*rows, strict=True))
    return cs.Logs(
        space,
        source,
        episode=np.arange(len(rows)),
        step=np.zeros(len(rows), dtype=int),
        state=state,
        action=action,
        reward=reward.astype(float),
        next_state=after,
        terminated=terminated.astype(bool),
        truncated=~terminated.astype(bool),
    )


def random_logs(rows=1500):
    """Logs in which a hidden cause ties the reward to the action; what is hardly taken pays most."""
    rng = np.random.default_rng(3)
    liking = np.array([[0.6, 0.35, 0.05], [0.1, 0.45, 0.45], [0.8, 0.1, 0.1], [0.05, 0.15, 0.8]])
    table = []
    for _ in range(rows):
        s, hidden = rng.integers(4), rng.random()
        x = int((hidden > liking[s].cumsum()).sum())
        table.append((s, x, 0.2 * (1 - liking[s, x]) + 0.2 * hidden, (s + x + rng.integers(2)) % 4, rng.random() < 0.2))
    return steps_of(cs.Space(range(4), range(3)), table)


def fixed_point(logs, discount, threshold):
    """Q iteration over the rows one by one, and the allowed actions."""
    states, actions = range(len(logs.space.states)), range(len(logs.space.actions))
    rows = {(s, x): np.flatnonzero((logs.state == s) & (logs.action == x)) for s in states for x in actions}
    taken = np.array([[len(rows[s, x]) for x in actions] for s in states])
    allowed = taken > threshold * taken.max(axis=1, keepdims=True)
    q_values = np.zeros(taken.shape)
    for _ in range(60):
        values = np.array([q_values[s][allowed[s]].max() for s in states])
        goal = logs.reward + discount * ~logs.terminated * values[logs.next_state]
        q_values = np.array([[goal[rows[s, x]].mean() if taken[s, x] else 0.0 for x in actions] for s in states])
    return q_values, allowed, taken


@pytest.fixture(scope="module")
def learned():
    logs = random_logs()
    return logs, train_bcq([logs], steps=1000, discount=0.6, threshold=0.3, batch=256, learning_rate=3e-3)


def test_the_network_finds_the_fixed_point_of_the_pooled_logs(learned):
    logs, found = learned
    q_values, allowed, taken = fixed_point(logs, 0.6, 0.3)
    assert not allowed.all()  # or the rule is not tried
    np.testing.assert_array_equal(found.allowed, allowed)
    np.testing.assert_allclose(found.q_values[allowed], q_values[allowed], atol=0.02)
    np.testing.assert_allclose(found.values, np.where(allowed, q_values, -np.inf).max(axis=1), atol=0.02)
    np.testing.assert_allclose(found.imitation, taken / taken.sum(axis=1, keepdims=True), atol=0.03)


def test_ended_steps_do_not_bootstrap_and_cut_ones_do():
    """From a and b to the worthy c: a ends there, b is cut there; c pays 0.5 and ends."""
    space = cs.Space(["a", "b", "c"], ["go"])
    rows = [(0, 0, 0.1, 2, True), (1, 0, 0.1, 2, False), (2, 0, 0.5, UNKNOWN, True)]
    found = train_bcq([steps_of(space, rows)], steps=500, discount=0.8, batch=32, learning_rate=3e-3)
    np.testing.assert_allclose(found.values, [0.1, 0.1 + 0.8 * 0.5, 0.5], atol=0.01)


def test_every_step_is_that_of_the_documented_loss_by_automatic_differentiation():
    """Torch differentiates the loss, written as it is documented, and takes the same steps with its own Adam."""
    torch = pytest.importorskip("torch")
    states, actions, width, number, batch = 9, 3, 8, 200, 3
    rng = np.random.default_rng(5)
    rows = Rows(
        rng.integers(states, size=number, dtype=np.int32),
        rng.integers(actions, size=number, dtype=np.int32),
        rng.normal(scale=2, size=number).astype(np.float32),  # beyond 1 the Huber loss is linear
        rng.integers(states, size=number, dtype=np.int32),
        rng.random(number) < 0.2,
    )
    settings = Settings(discount=0.9, threshold=0.9, learning_rate=0.02, target_every=7, logit_penalty=0.3)
    drawn = rng.integers(number, size=(40, batch), dtype=np.int32)
    network = Network(states, actions, width, rng)
    layers = [torch.tensor(layer, requires_grad=True) for layer in network.layers]
    first, second, bias, heads, head_bias = layers
    optimiser = torch.optim.Adam(layers)
    columns = [torch.as_tensor(column) for column in rows]

    def heads_of(seen):
        hidden = ((first[seen].relu() @ second) + bias).relu()
        return (hidden @ heads + head_bias).split(actions, dim=1)

    for done in range(len(drawn)):
        if done % settings.target_every == 0:
            target = heads_of(torch.arange(states))[0].detach()
        optimiser.param_groups[0]["lr"] = settings.learning_rate * (1 - done / len(drawn))
        state, action, reward, after, ended = (column[drawn[done]] for column in columns)
        q_values, logits = heads_of(state)
        with torch.no_grad():
            later, later_logits = heads_of(after)
            shares = later_logits.softmax(dim=1)
            forbidden = shares <= settings.threshold * shares.amax(dim=1, keepdim=True)
            best = later.masked_fill(forbidden, -torch.inf).argmax(dim=1)
            goal = reward + settings.discount * ~ended * target[after, best]
        error = torch.nn.functional.smooth_l1_loss(q_values.gather(1, action[:, None].long())[:, 0], goal)
        imitation = torch.nn.functional.cross_entropy(logits, action.long())
        optimiser.zero_grad()
        (error + imitation + settings.logit_penalty * logits.square().mean()).backward()
        optimiser.step()

    network.train(rows, drawn, settings)
    for ours, theirs in zip(network.layers, layers, strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-4)
    q_values, logits = heads_of(torch.arange(states))
    for ours, theirs in zip(network.tables(), (q_values, logits.softmax(dim=1)), strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-4)
