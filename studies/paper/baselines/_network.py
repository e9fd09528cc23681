"""The network of BCQ and its training, compiled: two hidden layers over one-hot states, and two heads.

It is so small that a library for networks spends most of its time between the layers.

- `Network`: the weights, and what is kept from step to step.
- `outputs`: Q-values and logits of some states.
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

    steps: int
    discount: float
    threshold: float
    learning_rate: float
    target_every: int
    logit_penalty: float


class Network:
    """A network before its first step.

    Attributes:
        layers, slopes: the weights and the slopes of the loss by them, as views of `weights` and `gradient`.
        means, squares: Adam's averages of the gradient and of its square.
        target: float32 [states, actions], the Q-values that goals are made of.
    """

    def __init__(self, states: int, actions: int, width: int, random: np.random.Generator) -> None:
        shapes = ((states, width), (width, width), (width,), (width, 2 * actions), (2 * actions,))
        size = sum(math.prod(shape) for shape in shapes)
        self.weights, self.gradient, self.means, self.squares = np.zeros((4, size), dtype=np.float32)
        self.layers, self.slopes = _layers(self.weights, shapes), _layers(self.gradient, shapes)
        self.target = np.zeros((states, actions), dtype=np.float32)
        # A state is one row of the first layer, so that its scale does not depend on how many states there are.
        scales = (1.0, math.sqrt(2 / width), 0.0, 0.1 / math.sqrt(width), 0.0)
        for layer, scale in zip(self.layers, scales, strict=True):
            if scale:
                layer[:] = scale * random.standard_normal(layer.shape, dtype=np.float32)

    def train(self, rows: Rows, drawn: IntArray, begin: int, settings: Settings) -> tuple[float, float]:
        """Take a step for each row of `drawn`, [steps, batch]; return the sums of the TD and the imitation losses.

        Args:
            rows: the rows of the logs.
            drawn: the positions of the rows of each step.
            begin: the number of steps that are done.
            settings: the settings.
        """
        averages = (self.means, self.squares)
        found: tuple[float, float] = train_steps(
            self.weights, self.gradient, averages, self.layers, self.slopes, self.target, rows, drawn, begin, settings
        )
        return found

    def tables(self) -> tuple[FloatArray, FloatArray]:
        """Return Q-values and the imitation probabilities of all states: float64 [states, actions] each."""
        _, _, output = outputs(self.layers, np.arange(len(self.target), dtype=np.int32))
        q_values, logits = np.split(output.astype(np.float64), 2, axis=1)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return q_values, shares / shares.sum(axis=1, keepdims=True)


def _layers(flat: Array32, shapes: tuple[tuple[int, ...], ...]) -> Layers:
    """Return parts of a flat array in the shapes of layers."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    parts = np.split(flat, ends[:-1])
    return Layers(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))


@njit(nogil=True)
def train_steps(
    weights: Any,
    gradient: Any,
    averages: Any,
    layers: Any,
    slopes: Any,
    target: Any,
    rows: Any,
    drawn: Any,
    begin: int,
    settings: Any,
) -> tuple[float, float]:
    """Take the steps of `Network.train`; whatever they change is passed to them."""
    batch, actions = drawn.shape[1], target.shape[1]
    discount = np.float32(settings.discount)
    state, action, reward, after, ended = rows  # once: each look-up of an attribute counts a reference
    all_states = np.arange(len(target), dtype=np.int32)
    place, states = np.full(len(target), -1, np.int32), np.empty(min(len(target), 2 * batch), np.int32)
    times, distinct = np.zeros(len(state), np.int32), np.empty(min(len(state), batch), np.int32)
    error_sum = imitation_sum = 0.0
    for done in range(begin, begin + len(drawn)):
        if done % settings.target_every == 0:
            target[:] = outputs(layers, all_states)[2][:, :actions]
        # Each row is looked at once, however often it was drawn, and so is each state, however many rows hold it.
        count = kept = 0
        for row in drawn[done - begin]:
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
        values, log_shares = imitate(output, found, target, np.float32(settings.threshold))
        slope = np.zeros_like(output)
        visits = np.zeros(count, np.float32)
        for row in distinct[:kept]:
            i, x, weight = place[state[row]], action[row], np.float32(times[row])
            times[row] = 0
            goal = reward[row]
            if not ended[row]:
                goal += discount * values[place[after[row]]]
            difference = output[i, x] - goal
            within = min(max(difference, -ONE), ONE)
            error_sum += weight * within * (difference - within / 2) / batch  # the Huber loss
            imitation_sum -= weight * log_shares[i, x] / batch
            slope[i, x] += weight * within
            slope[i, actions + x] -= weight
            visits[i] += weight
        add_imitation(output, log_shares, visits, np.float32(2 * settings.logit_penalty / actions), slope)
        slope /= np.float32(batch)
        gradient[:] = ZERO
        pass_back(layers, found, below, above, slope, slopes)
        rate = settings.learning_rate * (1 - done / settings.steps)
        follow(weights, gradient, averages[0], averages[1], rate, done + 1)
        place[found] = -1
    return error_sum, imitation_sum


@njit(nogil=True)
def outputs(layers: Any, states: Any) -> Any:
    """Return both hidden layers, float32 [states, width], and the output, [states, 2 * actions].

    The output holds Q-values first, then the logits of imitation.
    """
    first, second, bias, heads, head_bias = layers
    below = np.empty((len(states), len(bias)), np.float32)
    for i, s in enumerate(states):  # loops instead of slices, which take longer than these short rows
        for j in range(len(bias)):
            below[i, j] = max(first[s, j], ZERO)
    above = np.dot(below, second)
    for i in range(len(states)):
        for j in range(len(bias)):
            above[i, j] = max(above[i, j] + bias[j], ZERO)
    output = np.dot(above, heads)
    for i in range(len(states)):
        for j in range(len(head_bias)):
            output[i, j] += head_bias[j]
    return below, above, output


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
        for x in range(actions):
            log_shares[i, x] -= largest + np.log(total)
        values[i] = target[s, best]
    return values, log_shares


@njit(nogil=True)
def add_imitation(output: Any, log_shares: Any, visits: Any, pull: Any, slope: Any) -> None:
    """Add what visits to states contribute to the slope of the imitation loss and of the penalty on logits."""
    actions = log_shares.shape[1]
    for i in range(len(visits)):
        for x in range(actions):
            slope[i, actions + x] += visits[i] * (np.exp(log_shares[i, x]) + pull * output[i, actions + x])


@njit(nogil=True)
def pass_back(layers: Any, states: Any, below: Any, above: Any, slope: Any, slopes: Any) -> None:
    """Pass the slope of the loss by outputs, [states, 2 * actions], back to all layers; see `outputs`.

    The slopes by biases and by rows of the first layer are 0 before.
    """
    first, second, bias, heads, head_bias = slopes
    by_above = np.dot(slope, layers.heads.T)
    switch_off(by_above, above)
    by_below = np.dot(by_above, layers.second.T)
    switch_off(by_below, below)
    np.dot(above.T, slope, heads)
    np.dot(below.T, by_above, second)
    for i, s in enumerate(states):
        for j in range(len(head_bias)):
            head_bias[j] += slope[i, j]
        for j in range(len(bias)):
            bias[j] += by_above[i, j]
            first[s, j] = by_below[i, j]


@njit(nogil=True)
def switch_off(slope: Any, units: Any) -> None:
    """Set the slope by units that are off to 0."""
    for i in range(slope.shape[0]):
        for j in range(slope.shape[1]):
            slope[i, j] = slope[i, j] if units[i, j] > ZERO else ZERO


@njit(nogil=True, error_model="numpy")
def follow(weights: Any, gradient: Any, means: Any, squares: Any, rate: float, done: int) -> None:
    """Take step number `done` of Adam, from 1."""
    step = np.float32(rate / (1 - MEAN_DECAY**done))
    scale = np.float32(1 / math.sqrt(1 - SQUARE_DECAY**done))
    for j in range(len(weights)):
        means[j] = MEAN_DECAY * means[j] + (ONE - MEAN_DECAY) * gradient[j]
        squares[j] = SQUARE_DECAY * squares[j] + (ONE - SQUARE_DECAY) * gradient[j] * gradient[j]
        weights[j] -= step * means[j] / (np.sqrt(squares[j]) * scale + LEAST_ROOT)
