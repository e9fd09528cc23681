"""The small lemmas: learning rates, the clip function, clipped sums, and the deviation of a weighted mean.

- `learning_rates`: the weights alpha_t^i (the lemma on cumulative learning rates).
- `clip`, `clip_lemma`: clip[x | delta] and the lemma on it, as printed and corrected.
- `clipped_sum`: a bound of the sum of clip[scale / sqrt(n) | threshold].
- `log_term`, `deviation`: iota, and the radius in the concentration lemma.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import FloatArray


def learning_rates(horizon: int, visits: int) -> FloatArray:
    """Return alpha_t^i for t = `visits`: float64 [t + 1], i = 0 .. t, the weight of the i-th visit in the table.

    alpha_t = (H + 1) / (H + t), alpha_t^0 = prod_{j=1..t} (1 - alpha_j), and alpha_t^i is alpha_i prod_{j=i+1..t}
    (1 - alpha_j). They sum to 1; for t >= 1, with H the horizon,

        1 / sqrt(t) <= sum_i alpha_t^i / sqrt(i) <= 2 / sqrt(t),    max_i alpha_t^i <= 2 H / t,
        sum_i (alpha_t^i)^2 <= 2 H / t,                             sum_{t >= i} alpha_t^i = 1 + 1 / H for every i >= 1.

    Examples:
        >>> learning_rates(2, 2).tolist()
        [0.0, 0.25, 0.75]
    """
    t = np.arange(1, visits + 1)
    rate = (horizon + 1) / (horizon + t)
    kept = np.append(np.cumprod((1 - rate)[::-1])[::-1], 1.0)  # prod_{j = i + 1 .. t} (1 - alpha_j)
    return np.asarray(np.append(1.0, rate) * kept)


def clip(x: npt.ArrayLike, threshold: npt.ArrayLike) -> FloatArray:
    """Return clip[x | threshold] = x where x >= threshold, else 0 (Simchowitz and Jamieson 2019).

    Examples:
        >>> clip([1.0, 3.0], 2.0).tolist()
        [0.0, 3.0]
    """
    values = np.asarray(x, dtype=np.float64)
    return np.where(values >= np.asarray(threshold, dtype=np.float64), values, 0.0)


def clip_lemma(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, x: npt.ArrayLike, *, printed: bool = False) -> Any:
    """Return the slack of the clip lemma; where it is negative, the lemma fails.

    For a, b >= 0 and c > 0 with a + b >= c, and x in (0, 1]:  a + b <= clip[a | x c / 2] + (1 + x) b.

    Proof: if a < x c / 2, then b > c - x c / 2 >= c / 2, and x b > x c / 2 > a. The printed threshold is a c / 2, with
    which the lemma is false: for a = 1, b = 3, c = 4, x = 0.1 the right side is 3.3.

    Examples:
        >>> [round(float(clip_lemma(1, 3, 4, 0.1, printed=printed)), 9) for printed in (False, True)]
        [0.3, -0.7]
    """
    a, b, c, x = (np.asarray(number, dtype=np.float64) for number in (a, b, c, x))
    return clip(a, (a if printed else x) * c / 2) + (1 + x) * b - (a + b)


def clipped_sum(scale: npt.ArrayLike, threshold: npt.ArrayLike, most: npt.ArrayLike = math.inf) -> FloatArray:
    """Return a bound of sum_{n=1..most} clip[scale / sqrt(n) | threshold]: 2 scale min(sqrt(most), scale / threshold).

    Terms with n > (scale / threshold)^2 are 0, and sum_{n=1..N} 1 / sqrt(n) <= 2 sqrt(N). The paper's lemma has
    4 scale^2 / threshold, which is true, and twice as large as necessary.

    Examples:
        >>> float(clipped_sum(3.0, 1.0)), float(clip([3 / n**0.5 for n in range(1, 100)], 1.0).sum())
        (18.0, 14.11...)
    """
    scale, threshold, most = (np.asarray(number, dtype=np.float64) for number in (scale, threshold, most))
    with np.errstate(divide="ignore", invalid="ignore"):
        last = np.minimum(np.sqrt(most), np.where(scale > 0, scale / threshold, 0.0))
        return np.where(last > 0, 2.0 * scale * last, 0.0)


def log_term(states: int, actions: int, steps: float, p: float) -> float:
    """Return iota = log(S A T / p), with T = K H the number of steps in all episodes.

    Examples:
        >>> round(log_term(30, 5, 20_000, 0.1), 3)
        17.217
    """
    return math.log(max(states * actions * steps / p, 1.0))


def deviation(span: float, horizon: int, iota: float, visits: npt.ArrayLike) -> FloatArray:
    """Return span sqrt(H iota / t): a weighted mean of t visits deviates by more with probability at most exp(-iota).

    Let f_i be the outcome of the i-th visit, in an interval of length `span`. By Azuma's inequality and
    sum_i (alpha_t^i)^2 <= 2 H / t,

        P( sum_i alpha_t^i (E f - f_i) >= e ) <= exp( -2 e^2 / (span^2 sum_i (alpha_t^i)^2) )
                                              <= exp( -e^2 t / (H span^2) ),

    on either side. With iota = log(S A T / p) the radius holds for all (h, s, x) and all t at once with probability at
    least 1 - p. The printed lemma claims b_t / 2, and so holds for c >= 2 on one side.
    """
    return np.asarray(span * np.sqrt(horizon * iota / np.asarray(visits, dtype=np.float64)))
