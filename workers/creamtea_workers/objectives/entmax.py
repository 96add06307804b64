"""α-entmax and its Fenchel-Young loss (Peters, Niculae and Martins 2019; Peters and Martins 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea.methods.objectives import Entmax
from creamtea_workers.objectives.base import LabelSmoothing
from creamtea_workers.objectives.linear import LinearObjective, uses_kernels


@dataclass(frozen=True)
class EntmaxObjective(LinearObjective):
    """L_ε(z; y) = Ω*(z) + Ω(q) - z·q with q = (1 - ε) e_y + ε r and Ω(p) = (Σ p^α - 1) / (α (α - 1)).

    It equals L + ε (z_y - r·z) + C (Peters and Martins 2021, Proposition 1 and Appendix A). The constant
    C = Ω(q) - Ω(e_y) makes losses at different ε comparable, with minimum zero. The gradient is p̂ - q.
    """

    alpha: float  # 1.000001 … 50; 2 is sparsemax
    smoothing: LabelSmoothing

    def loss_and_gradient(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        gold, logits = targets[:, None], precise(logits, self.alpha)
        logits.sub_(logits.amax(1, keepdim=True))  # the shift does not change the loss
        value = self.entropy(self.smoothing.power_sum(self.alpha, gold, logits))
        value -= self.smoothing.expected(logits, gold)
        candidates, rest, tau = support(logits.mul_(self.alpha - 1), self.alpha)
        p = rest.pow(1 / (self.alpha - 1))
        value += self.conjugate(p, rest, tau)
        return value.sum(), self.smoothing.subtract_from_(candidates.put_(p, logits, 0.0), gold)

    def fused_(self, product: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        from creamtea_workers.objectives import kernels  # needs Triton, which PyTorch for CPUs does not bring

        powers = self.smoothing.power_sum(self.alpha, targets[:, None], bias.expand_as(product))
        losses = kernels.entmax_(product, bias, targets, self.alpha, self.smoothing)
        return losses.add_(self.entropy(powers))

    def conjugate(self, p: Tensor, rest: Tensor, tau: Tensor) -> Tensor:
        """Return Ω*(z) = p·z - Ω(p) (n,), for z with its maximum at 0.

        `rest` is (α - 1) z - τ (n, K) on the support of p and 0 elsewhere, so that (α - 1) p·z = p·rest + τ,
        and Σ p^α = p·rest.
        """
        powers = (p * rest).sum(1)
        return (powers + tau[:, 0]) / (self.alpha - 1) - self.entropy(powers)

    def entropy(self, power_sum: Tensor) -> Tensor:
        """Return Ω of distributions whose Σ p^α is `power_sum`."""
        return (power_sum - 1) / (self.alpha * (self.alpha - 1))

    def log_scores(self, logits: Tensor) -> Tensor:
        """Return log p, exactly -inf off the support."""
        if uses_kernels(logits):
            from creamtea_workers.objectives import kernels

            return kernels.entmax_log_scores(logits, self.alpha)
        rows = precise(logits.float(), self.alpha).reshape(-1, logits.shape[-1])
        rows = (rows - rows.amax(1, keepdim=True)).mul_(self.alpha - 1)
        candidates, rest, _ = support(rows, self.alpha)
        scores = rest.clamp_(max=1.0).log_().div_(self.alpha - 1)
        return candidates.put_(scores, rows, -math.inf).reshape(logits.shape).float()


# ---------------------------------------------------------------- the threshold


# The threshold τ of α-entmax: p = [(α - 1) z - τ]₊^β with β = 1 / (α - 1) and Σ p = 1.
#
# Scores are s = (α - 1)(z - max z) ≤ 0 throughout: the same entmax with τ in [-1, 0), and s - τ keeps its
# digits. The threshold of a subset of a row's entries is a lower bound of the row's threshold. Taking the
# largest entry of each block is cheap, and this bound leaves hardly more candidates than the support (some
# dozens in a trained model). The exact threshold is computed from the candidates alone.
#
# Precision: near α = 1, p is a high power of s - τ, which magnifies rounding; below α = 1.01 everything is in
# fp64, down to 1 + 10⁻⁶, where entmax differs from softmax by 10⁻⁶. Above α = 2, p is a root of s - τ: next
# to the threshold a word can have any probability although no digit of s - τ is left. There bisection ends
# with τ between two neighbouring fp64 numbers: p sums to more than 1 at one and to less at the other; p is
# interpolated between the two so that it sums to 1. Up to α = 50, -τ ≥ V^(1 - α) is in fp64's range.


BLOCK = 32  # entries that their largest represents
MARGIN = 1e-4  # lowers the bound by far more than rounding may have raised it
MAX_CANDIDATES = 0.25  # share of the entries above which gathering the candidates does not pay
NEAR_SOFTMAX = 1.01  # α below which fp32 is not precise enough
MAX_ITERATIONS = 60  # five to seven suffice; the limit is for rows that are not finite


@dataclass(frozen=True)
class Candidates:
    """The m entries of scores (n, V) above a bound (n, 1)."""

    scores: Tensor  # (n, K), K the largest number in a row, other rows padded with -1; or all entries (n, V)
    # (m,) each: rows, slots in `scores`, and words of the entries; None: `scores` are all entries in place
    places: tuple[Tensor, Tensor, Tensor] | None = None

    @classmethod
    def above(cls, scores: Tensor, bound: Tensor) -> Candidates:
        row, word = (scores > bound).nonzero(as_tuple=True)
        if len(row) > MAX_CANDIDATES * scores.numel():
            return cls(scores)
        counts = torch.bincount(row, minlength=len(scores))
        slot = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
        gathered = scores.new_full((len(scores), int(counts.max())), -1.0)
        gathered[row, slot] = scores[row, word]
        return cls(gathered, (row, slot, word))

    def put_(self, values: Tensor, into: Tensor, other: float) -> Tensor:
        """Put values (n, K) in the vocabulary's places of `into` (n, V), and `other` everywhere else."""
        if self.places is None:
            return values.to(into.dtype)
        row, slot, word = self.places
        into.fill_(other)[row, word] = values[row, slot].to(into.dtype)
        return into


def precise(logits: Tensor, alpha: float) -> Tensor:
    """Convert the logits to the type that α requires."""
    return logits.double() if alpha < NEAR_SOFTMAX else logits


def support(scores: Tensor, alpha: float) -> tuple[Candidates, Tensor, Tensor]:
    """Find candidates for the support of scores (n, V) whose maximum is 0.

    Returns the candidates, their [s - τ]₊ (n, K), and τ (n, 1); the latter two in fp64 if α > 2.
    """
    lowest = scores.new_full((len(scores), 1), -1.0)
    bound = (threshold(block_maxima(scores), alpha, lowest) - MARGIN).clamp_(min=-1.0)
    candidates = Candidates.above(scores, bound)
    if alpha <= 2:
        tau = threshold(candidates.scores, alpha, bound)
        return candidates, (candidates.scores - tau).clamp_(min=0.0), tau
    exact = candidates.scores.double()
    tau, above = bisection(exact, 1 / (alpha - 1))
    return candidates, between(exact, tau, above, alpha - 1), tau


def block_maxima(scores: Tensor) -> Tensor:
    """Return the largest of every BLOCK entries of scores (n, V), and up to BLOCK - 1 leftover entries."""
    whole = scores.shape[1] // BLOCK * BLOCK
    largest = scores[:, :whole].unflatten(1, (BLOCK, whole // BLOCK)).amax(1)
    return torch.cat([largest, scores[:, whole:]], 1)


def threshold(scores: Tensor, alpha: float, bound: Tensor) -> Tensor:
    """Return the threshold τ (n, 1) of scores (n, K). `bound` (n, 1) is a lower bound of τ."""
    beta = 1 / (alpha - 1)
    return newton(scores, beta, bound) if beta >= 1 else bisection(scores.double(), beta)[0]


def newton(scores: Tensor, beta: float, bound: Tensor) -> Tensor:
    """Find τ for β ≥ 1 (α ≤ 2), by Newton's method on g(τ) = ‖[s - τ]₊‖_β - 1.

    g is convex (a norm of non-negative convex functions) and decreasing: from a bound, where g ≥ 0, each step
    approaches τ from the left and none overshoots. From -1 it reaches rounding error after five to seven
    passes, however large the support. For β = 1, sparsemax, g is linear between changes of the support, and
    the result is exact. Sorting (Peters, Niculae and Martins 2019, Algorithm 2) takes twice as long with
    a small support, and over thirty times with 1,800 of 4,000 (docs/results/data/training.yaml).
    """
    tau = bound.clone()
    tolerance = 8 * torch.finfo(scores.dtype).eps
    for _ in range(MAX_ITERATIONS):
        rest = (scores - tau).clamp_(min=0.0)
        slope = power(rest, beta - 1)
        norm = rest.mul_(slope).sum(1, keepdim=True).pow_(1 / beta)
        step = (norm - 1) * norm.pow(beta - 1) / slope.sum(1, keepdim=True)
        tau += step
        if step.max().item() <= tolerance:
            break
    return tau


def bisection(scores: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """Find the numbers just below and above τ for β < 1 (α > 2), by bisection.

    Σ [s - τ]₊^β is then neither convex nor concave. Bisection halves the interval of the logarithm of the
    largest probability, m = (-τ)^β, which lies between 1/K and 1.
    """
    low = scores.new_full((len(scores), 1), max(1, scores.shape[1])).log_().neg_()  # K = 0: rows of NaN
    high = torch.zeros_like(low)
    for _ in range(MAX_ITERATIONS):
        middle = (low + high) / 2
        tau = -(middle / beta).exp()
        enough = (scores - tau).clamp_(min=0.0).pow_(beta).sum(1, keepdim=True) >= 1
        high, low = torch.where(enough, middle, high), torch.where(enough, low, middle)
    return -(high / beta).exp(), -(low / beta).exp()


def between(scores: Tensor, below: Tensor, above: Tensor, power: float) -> Tensor:
    """Interpolate the roots of [s - τ]₊ (n, K) between two neighbouring τ (n, 1), so that they sum to 1.

    Returns [s - τ]₊. `power`: the degree of the roots.
    """
    more, less = ((scores - tau).clamp_(min=0.0).pow_(1 / power) for tau in (below, above))
    excess, lack = (p.sum(1, keepdim=True) - 1 for p in (more, less))
    share = torch.where(excess > lack, -lack / (excess - lack), 1.0).clamp_(0.0, 1.0)
    return less.lerp_(more, share).pow_(power)


def power(rest: Tensor, exponent: float) -> Tensor:
    """Return rest^exponent for rest ≥ 0, with 0⁰ = 0: entries off the support add nothing."""
    if exponent == 0:
        return (rest > 0).to(rest.dtype)
    return rest.clone() if exponent == 1 else rest.pow(exponent)


def build(spec: Entmax, unigram: Tensor | None) -> EntmaxObjective:
    return EntmaxObjective(spec.alpha, LabelSmoothing(spec.label_smoothing, spec.smoothing, unigram))
