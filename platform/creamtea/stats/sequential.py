"""Tests that hold whenever one looks: for campaigns that stop, or turn elsewhere, once something is decided.

A fixed-sample test is right at one moment chosen before. Who looks after every rating and stops at p < 0.05
finds a difference between equal systems sooner or later. Here the 5 % are for all moments together.

Units (documents, or segments) come in random order; unit t is rated for a pair of systems with a probability
q_t that may depend on all that came before, never on unit t itself. With d_t the pair's difference on the
unit and B_t whether it was rated,

    y_t = B_t · w_t · d_t / q_t        (w_t the unit's size over the mean size)

has the mean difference as its expectation, given the past: means weighted by inverse probabilities are
unbiased however the campaign aimed. Σ(y_t − δ₀) is a martingale if the true difference is δ₀, and the
normal-mixture process

    E_t(δ₀) = (1 + V_t ρ²)^(−1/2) · exp( ρ² S_t(δ₀)² / (2 (1 + V_t ρ²)) )

with S_t = Σ(y − δ₀) and V_t = Σ(y − ȳ_t)² exceeds 1/α at any t with probability α, asymptotically: the
asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024 ("Time-uniform central
limit theory and asymptotic confidence sequences", Ann. Stat. 52, Theorem 2.2, with their Lyapunov version for
variances that change). It starts after `burn_in` units. Over 300 units false alarms are 3 % where values are
normal, 2 % of t with three degrees of freedom, 1 % by inverse probabilities of a fifth, and 7 % where values
are one-sidedly exponential, which differences of two systems are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from creamtea.stats.estimate import Array

ALPHA = 0.05
BURN_IN = 30  # units before the first look: V is then no longer a guess
_MIN_P = 1e-300


@dataclass(frozen=True)
class Sequence:
    """Along the units (…, t): the mean difference so far, the half-width of its confidence sequence (∞
    before the first look) and the p-value for a difference of 0, which never rises."""

    mean: Array
    half_width: Array
    p_value: Array

    @property
    def low(self) -> Array:
        return self.mean - self.half_width

    @property
    def high(self) -> Array:
        return self.mean + self.half_width


def sequence(values: Array, best_at: int, alpha: float = ALPHA, burn_in: int = BURN_IN) -> Sequence:
    """The confidence sequence of the mean of values (…, t), the y_t above.

    `best_at`: the number of units at which it should be narrowest (half of what is planned, say); it is valid
    whatever that is, if fixed before.
    """
    y = np.asarray(values, dtype=np.float64)
    t = np.arange(1, y.shape[-1] + 1)
    total = np.cumsum(y, axis=-1)
    mean = total / t
    # V_t = Σ(y − ȳ_t)², of values less their first mean, which keeps the digits
    squares = np.maximum(np.cumsum(y**2, axis=-1) - total**2 / t, 0.0)
    variance = squares / np.maximum(t - 1, 1)
    rho2 = _rho_squared(best_at, alpha)
    looked = (t >= burn_in) & (variance > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        standard = np.where(looked, total**2 / np.where(variance > 0, variance, 1.0), 0.0)
        half = np.where(looked, np.sqrt(variance) * _boundary(t, rho2, alpha) / t, np.inf)
    log_e = rho2 * standard / (2 * (1 + t * rho2)) - 0.5 * np.log1p(t * rho2)
    p = np.exp(-np.maximum.accumulate(np.maximum(np.where(looked, log_e, 0.0), 0.0), axis=-1))
    return Sequence(mean, half, np.maximum(p, _MIN_P))


def _boundary(t: Array, rho2: float, alpha: float) -> Array:
    """What |S_t| of values of variance 1 crosses with probability α at any time."""
    wide: Array = np.sqrt(2 * (1 + t * rho2) / rho2 * (0.5 * np.log1p(t * rho2) - math.log(alpha)))
    return wide


def _rho_squared(best_at: int, alpha: float) -> float:
    """ρ² that makes the boundary narrowest at t = best_at (Waudby-Smith et al. 2024, appendix B.2)."""
    return (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / max(1, best_at)
