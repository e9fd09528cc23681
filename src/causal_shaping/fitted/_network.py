"""Networks over observations (extra `deep`).

- `Network`: the estimator "network": shares of actions, and of values after each, from features that sources share.
- `NetworkSurface`: values at logged observations as a function of the observation, where trees fit badly: images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_integer
from causal_shaping._extras import needs_extra
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.transitions import Transitions
from causal_shaping.errors import ArgumentError, DataError, FileError
from causal_shaping.fitted import _kernels as kernels
from causal_shaping.fitted._forest import Real, atoms_of, centre_and_scale
from causal_shaping.fitted._kernels import NOTHING, Rule
from causal_shaping.fitted._stored import array_of
from causal_shaping.fitted._torch import Body, Processes, body_of, few_threads, inputs, scales_of, the_device
from causal_shaping.fitted.settings import Settings
from causal_shaping.io.files import replacing
from causal_shaping.io.inputs import InputFile

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

AT_ONCE, NUMBERS_AT_ONCE = 8192, 2**22
"""A network sees so many observations at a time when nothing is trained, and so many numbers; bounds the memory."""

LOOKED_AT, NUMBERS_LOOKED_AT = 100_000, 2**25
"""So many observations, and so many of their numbers, are looked at to scale inputs."""

EXPECTILE_WEIGHT = 10.0
"""How much the loss of expectiles, in units of the range of targets, counts beside those of shares. In a windy field
200 was no better: expectiles are solved for afterwards."""

POLISHED = 100_000
"""Rows of a source on which expectiles are solved for exactly, given the features. Gradients alone do not suffice: at
level 0.99 the few rows above pull a hundred times as hard as all those below."""

ROUNDS, ROUNDING = 10, 1e-4
"""An expectile is solved for in so many rounds of least squares at most, or until weights change by less than this."""

SETTLING = 5
"""The learning rate of the k-th fit is SETTLING / (SETTLING + k) times the first one's. At an equal rate ceilings of
a windy field rose with every fit, since the best action is that which chance favours."""

RIDGE = 1e-6
"""How much a round of least squares holds on to the last one's solution, as a share of the features' size:
features may depend on each other but for rounding."""

LEAST_GRADIENT = 1e-6
"""Adam's epsilon: gradients of about this size are rounding, which must not move weights as others do."""


class Network:
    """Shares of (action, value) at an observation, P(x | s) P(z | s, x): heads of each source on features of all.

    Shares of actions do not change over the steps, only those of values do: heads of their own keep what is learnt.
    Another head says how likely each source is at an observation; one that is too rare there shows nothing.
    """

    exact = False

    def __init__(
        self,
        rows: Transitions,
        weight: FloatArray,
        settings: Settings,
        seed: int,
        make: Body | None,
        processes: Processes,
    ) -> None:
        """Make a network with random weights, which differ by seed."""
        import torch
        from torch import nn

        if settings.expectile == 1:
            raise ArgumentError(
                "A network cannot learn the largest value that was seen: set expectile below 1, or "
                "estimator to 'forest'."
            )
        self.rows, self.settings, self._seed, self._processes = rows, settings, seed, processes
        self._known = rows.outcome_known
        self._pools = [_drawable(rows.rows_of(name), weight) for name in rows.sources]
        drawn = np.concatenate([pool for pool in self._pools if len(pool)])
        self._at_once = _at_most(AT_ONCE, NUMBERS_AT_ONCE, rows.shape)
        looked_at = min(_at_most(LOOKED_AT, NUMBERS_LOOKED_AT, rows.shape), len(drawn))
        some = np.random.default_rng(seed).choice(drawn, looked_at, replace=False)
        scales = scales_of(rows.observations[np.sort(rows.state[some])], plain=make is not None)
        self._scales = torch.as_tensor(scales, device=the_device())
        sizes = torch.tensor([float(len(pool)) for pool in self._pools], device=the_device())
        self._prior = torch.log(sizes / sizes.sum())
        sources, actions, hidden = len(rows.sources), len(rows.actions), settings.hidden
        self._outcomes = actions if self._known[drawn].all() else 2 * actions  # the second half: of unknown outcome
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            heads: dict[str, Module] = {
                "features": body_of(rows.shape, scales, hidden, settings.layers, make),
                "source": nn.Linear(hidden, sources),
                "action": nn.Linear(hidden, sources * self._outcomes),
                "best": nn.Linear(hidden, sources * (actions if settings.support == "observed-action" else 1)),
                "value": _heads(sources * actions, hidden, settings.atoms),
            }
            self._model: Any = nn.ModuleDict(heads).to(the_device())
        self.atoms: FloatArray = np.zeros(2)
        self._before: FloatArray = np.zeros(0)
        self._fits = 0

    def fit(self, targets: FloatArray, before: FloatArray) -> None:
        """Train on draws of rows, from the weights that the last step left, and solve for the expectiles.

        These are of gains, counted from `before`. Gains over the last values are small where
        values are smooth, and need less of the network than the values themselves.
        """
        import torch

        settings, self._before, gains = self.settings, before, targets - before[self.rows.state]
        proper = np.concatenate(self._pools)
        self._move_atoms(atoms_of(targets[proper[self._known[proper]]], settings.atoms))
        rng = np.random.default_rng([self._seed, self._fits])
        steps = settings.gradient_steps if self._fits else settings.first_gradient_steps
        rate = settings.rate * SETTLING / (SETTLING + self._fits)
        self._fits += 1
        with few_threads(settings.threads), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed + self._fits)  # for layers of the caller's own that draw
            _train(self._model, lambda: self._loss(self._draw(rng), targets, gains), steps, rate, self._processes)
            self._solve_expectiles(gains)

    def _move_atoms(self, atoms: FloatArray) -> None:
        """Take new atoms; a head's weights for one are those between its neighbours among the old."""
        import torch

        heads, best = self._model["value"], self._model["best"]
        if self._fits:
            lower, share = np.empty(len(atoms), dtype=np.int32), np.empty(len(atoms))
            kernels.project(atoms, self.atoms, lower, share)
            low, up = self._tensor(lower, np.int64), self._tensor(share, np.float32)
            wider = np.ptp(atoms) / np.ptp(self.atoms)
            with torch.no_grad():
                for weights in heads.parameters():
                    weights[..., : len(atoms)] = weights[..., low] * (1 - up) + weights[..., low + 1] * up
                for weights in best.parameters():
                    weights /= wider
        self.atoms = atoms

    def _draw(self, rng: np.random.Generator) -> LongArray:
        """Return this process's part of a batch: equally many rows of each source, sorted by source and action."""
        rows, pools = self.rows, [pool for pool in self._pools if len(pool)]
        each = max(1, self.settings.batch // len(pools))
        drawn = np.concatenate([pool[rng.integers(len(pool), size=each)] for pool in pools])
        drawn = drawn[self._processes.rank :: self._processes.count]
        return drawn[np.lexsort((rows.action[drawn], rows.source[drawn]))]

    def _loss(self, drawn: LongArray, targets: FloatArray, gains: FloatArray) -> Any:
        """Return the mean loss over a batch, of which `drawn` is this process's part."""
        import torch
        from torch.nn.functional import cross_entropy

        rows, settings, model = self.rows, self.settings, self._model
        sources, actions = len(rows.sources), len(rows.actions)
        own, action = rows.source[drawn].astype(np.int64), rows.action[drawn].astype(np.int64)
        known = self._known[drawn]
        lower, share = np.empty(len(drawn), dtype=np.int32), np.empty(len(drawn))
        kernels.project(targets[drawn], self.atoms, lower, share)
        features = model["features"](inputs(rows.observations[rows.state[drawn]], self._scales))
        source, group = self._tensor(own, np.int64), self._tensor(own * actions + action, np.int64)
        every = torch.arange(len(drawn), device=source.device)
        # shares of sources, of actions (and unknown outcomes), of atoms
        taken = model["action"](features).view(len(drawn), sources, -1)[every, source]
        outcome = self._tensor(np.where(known, action, action + actions), np.int64)
        atoms = model["value"](features, np.bincount(own * actions + action, minlength=sources * actions).tolist())
        atoms = atoms[:, : len(self.atoms)]
        low, up = self._tensor(lower, np.int64), self._tensor(share, np.float32)
        split = atoms[every, low] * (1 - up) + atoms[every, low + 1] * up
        # expectiles
        best = model["best"](features)
        excess = self._tensor(gains[drawn] / np.ptp(self.atoms), np.float32)
        excess = excess - best[every, source if best.shape[1] == sources else group]
        pull = torch.where(excess > 0, settings.expectile, 1 - settings.expectile)
        by_row = atoms.logsumexp(1) - split + EXPECTILE_WEIGHT * pull * excess**2
        shares = cross_entropy(model["source"](features), source, reduction="sum") + cross_entropy(
            taken, outcome, reduction="sum"
        )
        return (shares + (by_row * self._tensor(known, np.float32)).sum()) / settings.batch

    def _solve_expectiles(self, gains: FloatArray) -> None:
        """Solve for the weights of expectiles on the features that training left: least squares, repeated.

        The rows are the same in all fits: the largest of several ceilings picks what chance made too large, and chance
        that differed from fit to fit would add up.
        """
        import torch

        rng = np.random.default_rng(self._seed)

        rows, head, actions = self.rows, self._model["best"], len(self.rows.actions)
        by_action = head.out_features > len(rows.sources)
        with torch.no_grad():
            for i, pool in enumerate(self._pools):
                drawn = pool if len(pool) <= POLISHED else rng.choice(pool, POLISHED, replace=False)
                drawn = np.sort(drawn[self._known[drawn]])
                if not len(drawn):
                    continue
                features = self._features(rows.state[drawn])
                features = torch.cat([features, torch.ones_like(features[:, :1])], dim=1)
                wanted = self._tensor(gains[drawn] / np.ptp(self.atoms), np.float32)
                for x in range(actions) if by_action else [0]:
                    k = i * actions + x if by_action else i
                    which = self._tensor(rows.action[drawn] == x, np.bool_) if by_action else slice(None)
                    start = torch.cat([head.weight[k], head.bias[k, None]])
                    found = _expectile_weights(features[which], wanted[which], start, self.settings.expectile)
                    head.weight[k], head.bias[k] = found[:-1], found[-1]

    def _features(self, numbers: LongArray) -> Tensor:
        import torch

        parts = [numbers[begin : begin + self._at_once] for begin in range(0, len(numbers), self._at_once)]
        seen = [self._model["features"](inputs(self.rows.observations[part], self._scales)) for part in parts]
        return torch.cat(seen)

    def _shown(self, which: slice | LongArray) -> tuple[npt.NDArray[Any], ...]:
        """Return shares of (action, atom), of actions, and expectiles of gains, of each source at observations.

        An expectile of targets is at most the largest target, where a network may go beyond.
        """
        import torch

        before, observations = self._before[which], self.rows.observations[which]
        model, settings, actions = self._model, self.settings, len(self.rows.actions)
        with torch.no_grad():
            features = model["features"](inputs(observations, self._scales))
            shape = (len(features), len(self.rows.sources))
            taken = model["action"](features).view(*shape, self._outcomes).softmax(2)
            known = taken[:, :, :actions].clone()
            if self._outcomes > actions:
                taken = taken[:, :, :actions] + taken[:, :, actions:]
            masses = model["value"].all(features, len(self.atoms)).view(*shape, actions, -1).softmax(3)
            masses *= known[..., None]
            best = model["best"](features).view(*shape, -1).double() * float(np.ptp(self.atoms))
            likely = (model["source"](features) + self._prior).softmax(1)
            absent = likely < settings.least_rows / settings.leaf
            masses[absent], taken[absent], best[absent] = 0.0, 0.0, NOTHING
        best = np.minimum(best.cpu().numpy(), (self.atoms[-1] - before)[:, None, None])
        return masses.cpu().numpy(), taken.cpu().numpy(), best

    def q_values(self, which: slice, rule: Rule, admissible: BoolArray, guess: bool) -> tuple[FloatArray, float]:
        """Return the values of all actions at some observations, and how far masses add to more than 1."""
        import torch

        processes = self._processes
        found, worst = np.zeros((which.stop - which.start, len(self.rows.actions))), np.zeros(processes.count)
        with few_threads(self.settings.threads):
            for number, begin in enumerate(range(0, len(found), self._at_once)):
                if number % processes.count != processes.rank:
                    continue
                own = slice(begin, min(begin + self._at_once, len(found)))
                some = slice(which.start + own.start, which.start + own.stop)
                shown = (*self._shown(some), self._before[some])
                mask = admissible if len(admissible) == 1 else admissible[own]
                excess = kernels.back_up_masses(*shown, self.atoms, rule, mask, guess, found[own])
                worst[processes.rank] = max(worst[processes.rank], excess)
        processes.add_up([torch.from_numpy(found), torch.from_numpy(worst)])
        return found, float(worst.max())

    def shares(self, which: LongArray, rule: Rule) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return shares of (action, atom), of actions, and expectiles, at some observations."""
        with few_threads(self.settings.threads):
            masses, taken, best = self._shown(which)
        best = np.where(best > NOTHING, best + self._before[which][:, None, None], NOTHING)
        return masses.astype(np.float64), taken.astype(np.float64), best

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what an interrupted fit needs to go on: weights, atoms, and how many fits there were."""
        return _arrays_of(self._model) | {"atoms": self.atoms, "before": self._before, "fits": np.array(self._fits)}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take up what `state` returned."""
        held = dict(state)
        self.atoms, self._before, self._fits = held.pop("atoms"), held.pop("before"), int(held.pop("fits"))
        _load_arrays(self._model, held)

    def _tensor(self, array: npt.NDArray[Any], dtype: Any) -> Tensor:
        import torch

        return torch.as_tensor(array.astype(dtype), device=self._scales.device)


@dataclass(frozen=True, eq=False)
class NetworkSurface:
    """Columns of numbers as functions of the observation, by a network; see `Surface` of the forest.

    Attributes:
        model: from inputs to standardised columns.
        shape: that of one observation.
        hidden: features in each layer.
        layers: fully connected layers before the last.
        scales: those of the inputs.
        centre: float32 [columns], their means.
        scale: float32 [columns], their standard deviations.
    """

    model: Module
    shape: tuple[int, ...]
    hidden: int
    layers: int
    scales: npt.NDArray[np.float32]
    centre: npt.NDArray[np.float32]
    scale: npt.NDArray[np.float32]

    @classmethod
    def fit(cls, rows: Transitions, which: LongArray, columns: FloatArray, settings: Settings, seed: int) -> Self:
        """Fit columns [observations, columns] at some observations, by number."""
        import torch

        rng = np.random.default_rng(seed)
        most = min(_at_most(LOOKED_AT, NUMBERS_LOOKED_AT, rows.shape), len(which))
        looked_at = np.sort(rng.choice(which, most, replace=False))
        centre, scale = (part.astype(np.float32) for part in centre_and_scale(columns))
        wanted = ((columns - centre) / scale).astype(np.float32)
        scales = scales_of(rows.observations[looked_at], plain=False)
        with few_threads(settings.threads), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            sizes = rows.shape, settings.hidden, settings.layers
            made = cls(cls._model(*sizes, scales, len(centre)).to(the_device()), *sizes, scales, centre, scale)
            place = torch.as_tensor(scales, device=the_device())

            def loss() -> Any:
                drawn = rng.integers(len(which), size=settings.batch)
                found = made.model(inputs(rows.observations[which[drawn]], place))
                return ((found - torch.as_tensor(wanted[drawn], device=place.device)) ** 2).mean()

            _train(made.model, loss, settings.first_gradient_steps, settings.rate, Processes())
        made.model.cpu()
        return made

    @staticmethod
    def _model(shape: tuple[int, ...], hidden: int, layers: int, scales: Real, columns: int) -> Module:
        from torch import nn

        return nn.Sequential(body_of(shape, scales, hidden, layers, None), nn.Linear(hidden, columns))

    def at(self, observations: npt.NDArray[Any], column: npt.ArrayLike) -> FloatArray:
        """Return a column, or one for each observation."""
        import torch

        columns = np.broadcast_to(np.asarray(column, dtype=np.int64), len(observations))
        found = np.empty(len(observations))
        scales = torch.as_tensor(self.scales)
        with torch.inference_mode():
            at_once = _at_most(AT_ONCE, NUMBERS_AT_ONCE, self.shape)
            for begin in range(0, len(observations), at_once):
                own = slice(begin, begin + at_once)
                table = self.model(inputs(observations[own], scales)).numpy() * self.scale + self.centre
                found[own] = table[np.arange(len(table)), columns[own]]
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as arrays by name."""
        own = {"scales": self.scales, "centre": self.centre, "scale": self.scale}
        sizes = {"shape": np.array(self.shape), "hidden": np.array([self.hidden]), "layers": np.array([self.layers])}
        return _arrays_of(self.model) | own | sizes

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], shape: tuple[int, ...], columns: int) -> Self:
        """Return what `arrays` gave, for observations of a shape and so many columns; or say what does not fit.

        The weights that the file holds become those of the model: no others are allocated, whatever it declares.
        """
        with needs_extra("Networks", "deep"):
            import torch

        weights = {name: array_of(arrays, name, array.dtype, array.shape) for name, array in arrays.items()}
        sizes = {name: weights.pop(name, np.zeros(0)).tolist() for name in ("shape", "hidden", "layers")}
        if sizes["shape"] != list(shape):
            raise DataError(f"the network is for observations of shape {sizes['shape']} instead of {list(shape)}")
        (hidden,), (layers,) = sizes["hidden"], sizes["layers"]
        check_integer("hidden", hidden, least=1)
        check_integer("layers", layers, least=1, most=len(weights))  # each has weights
        scales = array_of(arrays, "scales", np.float32, (2 if len(shape) > 1 else None, shape[-1]))
        centre, scale = (array_of(arrays, name, np.float32, (columns,)) for name in ("centre", "scale"))
        for name in ("scales", "centre", "scale"):
            del weights[name]
        if any(array.dtype != np.float32 for array in weights.values()):
            raise DataError("the weights of the network are not float32")
        with torch.device("meta"):  # shapes alone
            model = cls._model(shape, hidden, layers, scales, columns)
        _load_arrays(model, weights, assign=True)
        return cls(model, shape, hidden, layers, scales, centre, scale)


def save_network(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays to a safetensors file."""
    from safetensors.numpy import save

    with replacing(path, [".safetensors"]) as temporary:
        temporary.write_bytes(save(dict(arrays)))


def load_network(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a safetensors file, whose format checks sizes before memory is taken."""
    with needs_extra("Networks", "deep"):
        from safetensors import SafetensorError
        from safetensors.numpy import load

    with InputFile.at(path).open() as file:
        content = file.read()
    try:
        return dict(load(content))
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{path} is not a complete safetensors file: {error}. Was it changed?") from error


def _heads(count: int, hidden: int, atoms: int) -> Any:
    """Return linear heads that lie in one tensor, and are trained each on rows of its own."""
    import torch
    from torch import nn

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            bound = 1 / math.sqrt(hidden)
            self.weight = nn.Parameter(torch.empty(count, hidden, atoms).uniform_(-bound, bound))
            self.bias = nn.Parameter(torch.zeros(count, atoms))

        def forward(self, features: Tensor, sizes: list[int]) -> Tensor:
            """Return the logits of rows that are sorted by head, so many for each."""
            parts = zip(torch.split(features, sizes), self.weight.unbind(), self.bias.unbind(), strict=True)
            return torch.cat([torch.addmm(bias, own, weight) for own, weight, bias in parts])

        def all(self, features: Tensor, atoms: int) -> Tensor:
            """Return the logits of all heads, for the first atoms: [rows, heads * atoms]."""
            weight = self.weight[..., :atoms].permute(1, 0, 2).flatten(1)
            return torch.addmm(self.bias[:, :atoms].flatten(), features, weight)

    return Heads()


def _at_most(observations: int, numbers: int, shape: tuple[int, ...]) -> int:
    """Return so many observations at most, fewer if these hold more than so many numbers."""
    return max(1, min(observations, numbers // math.prod(shape)))


def _drawable(own: slice, weight: FloatArray) -> LongArray:
    """Return the rows of a source, each as often as its weight says."""
    return np.repeat(np.arange(own.start, own.stop), weight[own].astype(np.int64))


def _train(model: Module, loss: Callable[[], Any], steps: int, rate: float, processes: Processes) -> None:
    """Take gradient steps whose rate falls to 0; processes add up theirs, each for its part of a batch."""
    import torch

    model.train()
    parameters = list(model.parameters())
    for one in parameters:
        one.grad = torch.zeros_like(one)
    optimiser = torch.optim.Adam(parameters, lr=rate, eps=LEAST_GRADIENT, fused=True)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * (1 - step / steps)
        optimiser.zero_grad(set_to_none=False)
        loss().backward()
        processes.add_up([one.grad for one in parameters if one.grad is not None])
        optimiser.step()
    model.eval()


def _expectile_weights(features: Tensor, wanted: Tensor, start: Tensor, level: float) -> Tensor:
    """Return the weights of features [rows, features] with the least expectile loss, from those to start at."""
    import torch

    found, features, wanted = start.double(), features.double(), wanted.double()  # Gram matrices need the digits
    all_gram, all_right = features.T @ features, features.T @ wanted
    for _ in range(ROUNDS):
        # all rows with the weight of those below, and the few above with what they weigh more
        above = wanted > features @ found
        high = features[above]
        gram = (1 - level) * all_gram + (2 * level - 1) * (high.T @ high)
        ridge = RIDGE * gram.diagonal().mean() + RIDGE**2
        right = (1 - level) * all_right + (2 * level - 1) * (high.T @ wanted[above]) + ridge * found
        before, found = found, torch.linalg.solve(gram + ridge * torch.eye(len(gram)).to(gram), right)
        if float((found - before).abs().max()) < ROUNDING:
            break
    return found.float()


def _arrays_of(model: Module) -> dict[str, npt.NDArray[Any]]:
    """Return the weights of a model, under names with a prefix."""
    return {f"model.{name}": held.cpu().numpy().copy() for name, held in model.state_dict().items()}


def _load_arrays(model: Module, arrays: Mapping[str, npt.NDArray[Any]], assign: bool = False) -> None:
    """Give a model the weights that `_arrays_of` returned, which must fit; or with `assign` their very arrays."""
    import torch

    weights = {name.removeprefix("model."): torch.as_tensor(array) for name, array in arrays.items()}
    try:
        model.load_state_dict(weights, assign=assign)
    except RuntimeError as error:
        raise DataError(f"the weights do not fit the network: {error}") from error
