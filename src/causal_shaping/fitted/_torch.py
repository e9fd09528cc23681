"""What networks share (extra `deep`): layers for vectors and images, threads, and several processes under torchrun.

- `Processes`: this process among those that train together; alone it is the only one.
- `few_threads`: so many threads inside, the caller's number again afterwards.
- `scales_of`, `inputs`, `body_of`: from observations to features.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from causal_shaping._extras import needs_extra
from causal_shaping.fitted._forest import Real, centre_and_scale

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Body = Callable[[tuple[int, ...], int], "Module"]
"""Makes a module from the shape of one input, [coordinates] or [channels, rows, columns], and its number of outputs."""

PIECES = 16
"""Each coordinate of a vector is given to the network in so many pieces, between quantiles of the logs. In a windy
field, whose values jump at the edges of lava, plain coordinates doubled the error of ceilings."""

MOST_INPUTS = 1024
"""Vectors with more pieces are given by plain coordinates."""

BYTE = 255.0
"""The largest number in an image."""

SMALL = 12
"""Images are halved by convolutions until their shorter side is at most this."""

CHANNELS = (16, 32)
"""Channels of the first convolution, and of all that follow."""


@dataclass(frozen=True)
class Processes:
    """This process among those that train together.

    Attributes:
        rank: its number; only 0 writes files.
        count: how many there are.
    """

    rank: int = 0
    count: int = 1

    def add_up(self, arrays: Sequence[Tensor]) -> None:
        """Replace each array by its sum over processes."""
        if self.count > 1:
            import torch
            import torch.distributed as dist

            joined = torch.cat([array.reshape(-1) for array in arrays])
            dist.all_reduce(joined)
            for array, part in zip(arrays, torch.split(joined, [array.numel() for array in arrays]), strict=True):
                array.copy_(part.view_as(array))


@contextmanager
def together() -> Iterator[Processes]:
    """Find the other processes that torchrun started, or that the caller has joined to a group."""
    with needs_extra("Networks", "deep"):
        import torch.distributed as dist

    own = not dist.is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1
    if own:
        dist.init_process_group("gloo")
    try:
        yield Processes(dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else Processes()
    finally:
        if own:
            dist.destroy_process_group()


@contextmanager
def few_threads(count: int) -> Iterator[None]:
    """Use so many threads inside, and the caller's number again afterwards."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def the_device() -> str:
    """Return where networks are trained: on a GPU if there is one."""
    with needs_extra("Networks", "deep"):
        import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def scales_of(observations: npt.NDArray[Any], *, plain: bool) -> Real:
    """Return what inputs are made with: quantiles of each coordinate, or mean and deviation of each (or each channel).

    float32 [PIECES + 1, coordinates]; [2, coordinates or channels] for images, long vectors, or if `plain`.
    """
    seen = np.asarray(observations, dtype=np.float32).reshape(-1, observations.shape[-1])
    if observations.ndim == 2 and not plain and seen.shape[1] * PIECES <= MOST_INPUTS:
        return np.quantile(seen, np.linspace(0, 1, PIECES + 1), axis=0).astype(np.float32)
    if observations.dtype == np.uint8:
        seen = seen / np.float32(BYTE)
    return np.stack(centre_and_scale(seen.astype(np.float64))).astype(np.float32)


def inputs(observations: npt.NDArray[Any], scales: Tensor) -> Tensor:
    """Return observations as the first layer takes them: images by channel, row and column."""
    import torch

    seen = torch.as_tensor(np.ascontiguousarray(observations, dtype=np.float32), device=scales.device)
    if observations.dtype == np.uint8:
        seen /= BYTE
    if len(scales) == 2:
        scaled = (seen - scales[0]) / scales[1]
        return scaled.permute(0, 3, 1, 2).contiguous() if seen.ndim == 4 else scaled
    width = scales[1:] - scales[:-1]
    pieces = (seen[:, None] - scales[:-1]) / torch.where(width > 0, width, 1.0)
    return pieces.clamp(0, 1).flatten(1)


def body_of(shape: tuple[int, ...], scales: Real, hidden: int, layers: int, make: Body | None) -> Module:
    """Return layers from inputs to `hidden` features: fully connected ones, after convolutions for images."""
    from torch import nn

    if len(shape) == 3:
        shape = (shape[2], *shape[:2])
    elif len(scales) > 2:
        shape = ((len(scales) - 1) * shape[0],)
    if make is not None:
        return make(shape, hidden)
    parts: list[Module] = []
    width = shape[0]
    if len(shape) == 3:
        sides: tuple[int, ...] = shape[1:]
        for place in itertools.count():
            step = 2 if min(sides) > SMALL else 1
            channels = CHANNELS[min(place, 1)]
            parts += [nn.Conv2d(width, channels, 3, stride=step, padding=1), nn.ReLU()]
            sides, width = tuple((side - 1) // step + 1 for side in sides), channels
            if step == 1:
                break
        parts.append(nn.Flatten())
        width *= math.prod(sides)
    for _ in range(layers):
        parts += [nn.Linear(width, hidden), nn.ReLU()]
        width = hidden
    return nn.Sequential(*parts)
