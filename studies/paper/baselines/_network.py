"""The network of BCQ and its training, compiled: two hidden layers over one-hot states, and two heads.

It is so small that a library for networks spends most of its time between the layers.

- `Network`: the weights, and what is kept from step to step.
- `train_steps`: gradient steps on rows that were drawn.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causal_shaping._compile import njit
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray

Array32 = npt.NDArray[np.float32]

MEAN_DECAY, SQUARE_DECAY, LEAST_ROOT = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
"""Adam's constants, as published: the decay of both averages, and what is added to the root of the second."""

ZERO, ONE = np.float32(0), np.float32(1)


class Layers(NamedTuple):
    """The layers: a row of the first per state; the second and its bias; both heads side by side, and their bias."""

    first: Array32
    second: Array32
    bias: Array32
    heads: Array32
    head_bias: Array32


class Rows(NamedTuple):
    """The rows to learn from; where `ended` is set nothing follows, and `after` is not used."""

    state: IntArray
    action: IntArray
    reward: Array32
    after: IntArray
    ended: BoolArray


class Settings(NamedTuple):
    """The settings of a training; see `train_bcq`."""

    discount: float
    threshold: float
    learning_rate: float
    target_every: int
    logit_penalty: float


class Network:
    """A network before its first step.

    Attributes:
        layers, slopes: the weights and the slopes of the loss by them, as views of `weights` and `gradient`.
    """

    def __init__(self, states: int, actions: int, width: int, random: np.random.Generator) -> None:
        self.states = np.arange(states, dtype=np.int32)
        shapes = ((states, width), (width, width), (width,), (width, 2 * actions), (2 * actions,))
        self.weights, self.gradient = np.zeros((2, sum(math.prod(shape) for shape in shapes)), dtype=np.float32)
        self.layers, self.slopes = _layers(self.weights, shapes), _layers(self.gradient, shapes)
        # A state is one row of the first layer, so that its scale does not depend on how many states there are.
        for layer, scale in ((0, 1.0), (1, math.sqrt(2 / width)), (3, 0.1 / math.sqrt(width))):
            self.layers[layer][:] = scale * random.standard_normal(shapes[layer], dtype=np.float32)

    def train(self, rows: Rows, drawn: IntArray, settings: Settings) -> None:
        """Take a step for each row of `drawn`, [steps, batch]: the positions of its batch in the rows of the logs."""
        train_steps(self.weights, self.gradient, self.layers, self.slopes, self.states, rows, drawn, settings)

    def tables(self) -> tuple[FloatArray, FloatArray]:
        """Return Q-values and the imitation probabilities of all states: float64 [states, actions] each."""
        _, _, output = outputs(self.layers, self.states)
        q_values, logits = np.split(output.astype(np.float64), 2, axis=1)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return q_values, shares / shares.sum(axis=1, keepdims=True)


def _layers(flat: Array32, shapes: tuple[tuple[int, ...], ...]) -> Layers:
    """Return parts of a flat array in the shapes of layers."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    parts = np.split(flat, ends[:-1])
    return Layers(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))


@njit(nogil=True)
def outputs(layers: Any, states: Any) -> Any:
    """Return both hidden layers, float32 [states, width], and the output, [states, 2 * actions].

    The output holds Q-values first, then the logits of imitation.
    """
    first, second, bias, heads, head_bias = layers
    below = np.maximum(first[states], ZERO)
    above = np.maximum(np.dot(below, second) + bias, ZERO)
    return below, above, np.dot(above, heads) + head_bias


@njit(nogil=True, error_model="numpy")
def imitate(output: Any, states: Any, target: Any, threshold: Any) -> Any:
    """Return the target's values of the best allowed actions, [states], and logs of the imitation shares.

    The latter are float32 [states, actions].
    """
    actions = target.shape[1]
    values, log_shares = np.empty(len(states), np.float32), output[:, actions:].copy()
    for i, s in enumerate(states):
        largest = log_shares[i].max()
        best, total = -1, ZERO
        for x in range(actions):
            share = np.exp(log_shares[i, x] - largest)  # of that of the most probable action
            total += share
            if share > threshold and (best < 0 or output[i, x] > output[i, best]):
                best = x
        log_shares[i] -= largest + np.log(total)
        values[i] = target[s, best]
    return values, log_shares


@njit(nogil=True, error_model="numpy")
def train_steps(weights, gradient, layers, slopes, all_states, rows, drawn, settings):  # type: ignore[no-untyped-def]
    """Take the steps of `Network.train`; whatever they change is passed to them."""
    steps, batch = drawn.shape
    discount, threshold = np.float32(settings.discount), np.float32(settings.threshold)
    state, action, reward, after, ended = rows  # once: each look-up of an attribute counts a reference
    actions = len(layers.head_bias) // 2
    pull = np.float32(2 * settings.logit_penalty / actions)
    target = np.zeros((len(all_states), actions), np.float32)  # the Q-values that goals are made of
    means, squares = np.zeros_like(weights), np.zeros_like(weights)
    place, states = np.full(len(target), -1, np.int32), np.empty(min(len(target), 2 * batch), np.int32)
    times, distinct = np.zeros(len(state), np.int32), np.empty(min(len(state), batch), np.int32)
    for done in range(steps):
        if done % settings.target_every == 0:
            target[:] = outputs(layers, all_states)[2][:, :actions]
        # Each row is looked at once, however often it was drawn, and so is each state, however many rows hold it.
        count = kept = 0
        for row in drawn[done]:
            if times[row] == 0:
                distinct[kept] = row
                kept += 1
            times[row] += 1
        for row in distinct[:kept]:
            for s in (state[row], after[row]):
                if place[s] < 0:
                    place[s] = count
                    states[count] = s
                    count += 1
        found = states[:count]
        below, above, output = outputs(layers, found)
        values, log_shares = imitate(output, found, target, threshold)
        # The slope of the loss by outputs: Huber's, then that of imitation and of the penalty on logits.
        slope, visits = np.zeros_like(output), np.zeros(count, np.float32)
        for row in distinct[:kept]:
            i, x, weight = place[state[row]], action[row], np.float32(times[row])
            times[row] = 0
            goal = reward[row]
            if not ended[row]:
                goal += discount * values[place[after[row]]]
            slope[i, x] += weight * min(max(output[i, x] - goal, -ONE), ONE)
            slope[i, actions + x] -= weight
            visits[i] += weight
        for i in range(count):
            for x in range(actions):
                slope[i, actions + x] += visits[i] * (np.exp(log_shares[i, x]) + pull * output[i, actions + x])
        slope /= np.float32(batch)
        place[found] = -1
        # Back through the layers, whose slopes are views of the gradient.
        by_above = np.where(above > ZERO, np.dot(slope, layers.heads.T), ZERO)
        by_below = np.where(below > ZERO, np.dot(by_above, layers.second.T), ZERO)
        gradient[:] = ZERO
        np.dot(above.T, slope, slopes.heads)
        np.dot(below.T, by_above, slopes.second)
        slopes.head_bias[:] = slope.sum(axis=0)
        slopes.bias[:] = by_above.sum(axis=0)
        slopes.first[found] = by_below
        # A step of Adam.
        rate = settings.learning_rate * (1 - done / steps)
        step = np.float32(rate / (1 - MEAN_DECAY ** (done + 1)))
        scale = np.float32(1 / math.sqrt(1 - SQUARE_DECAY ** (done + 1)))
        for j in range(len(weights)):
            means[j] = MEAN_DECAY * means[j] + (ONE - MEAN_DECAY) * gradient[j]
            squares[j] = SQUARE_DECAY * squares[j] + (ONE - SQUARE_DECAY) * gradient[j] * gradient[j]
            weights[j] -= step * means[j] / (np.sqrt(squares[j]) * scale + LEAST_ROOT)
