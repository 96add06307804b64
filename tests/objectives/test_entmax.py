"""α-entmax against the entmax package and against bisection, and its conjugate against the definition."""

import math

import entmax as package
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from creamtea.methods.objectives import Entmax
from creamtea_workers.objectives import build_objective
from creamtea_workers.objectives.entmax import MARGIN, Candidates, bisection, block_maxima, newton, threshold

LARGE_ALPHAS = [2.3, 3.0, 8.0, 20.0, 50.0]
ALPHAS = [1.000001, 1.005, 1.05, 1.3, 1.5, 1.8, 2.0, 2.3, 3.0, 8.0]


def objective(alpha: float, epsilon: float = 0.0):
    return build_objective(Entmax(kind="entmax", alpha=alpha, label_smoothing=epsilon))


def entmax(logits: torch.Tensor, alpha: float) -> torch.Tensor:
    """The probabilities that training uses: the gradient of Ω*, plus what the target has (fp64)."""
    _, gradient = objective(alpha).loss_and_gradient(logits.clone(), torch.zeros(len(logits)).long())
    gradient[:, 0] += 1
    return gradient


def of_package(logits: torch.Tensor, alpha: float) -> torch.Tensor:
    exact = {1.5: package.entmax15, 2.0: package.sparsemax}
    return (
        exact[alpha](logits, -1) if alpha in exact else package.entmax_bisect(logits, alpha, -1, n_iter=100)
    )


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("scale", [1e-4, 0.1, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("size", [1, 2, 33, 400])
def test_is_that_of_the_entmax_package(alpha: float, scale: float, size: int) -> None:
    """From the whole row in the support (small scales) to one word."""
    torch.manual_seed(1)
    logits = torch.randn(5, size, dtype=torch.float64) * scale
    p = entmax(logits, alpha)
    torch.testing.assert_close(p, of_package(logits, alpha), atol=1e-7, rtol=1e-6)
    torch.testing.assert_close(p.sum(1), torch.ones(5).double(), atol=1e-7, rtol=0)


def assert_maximal(p: torch.Tensor, logits: torch.Tensor, alpha: float) -> None:
    """The conditions for the maximum of p·z - Ω(p) where Σ p = 1: (α - 1) z - p^(α - 1) is the same τ for all
    in the support, and not above τ elsewhere."""
    scores = (logits - logits.amax(1, keepdim=True)) * (alpha - 1)
    tau = -p.amax(1, keepdim=True).pow(alpha - 1)
    apart = (scores - p.pow(alpha - 1) - tau) / torch.maximum(scores.abs().amax(), tau.abs().amax())
    assert apart[p > 0].abs().max() < 1e-14
    assert apart.max() < 1e-14


@pytest.mark.slow
@example([5, -8], 0.01, 8.0)
@example([-3, -3, 5], 0.01, 8.0)
@given(
    st.lists(st.integers(-8, 8), min_size=1, max_size=80),
    st.sampled_from([0.01, 0.3, 1.0]),
    st.sampled_from(ALPHAS),
)
def test_rows_with_many_equal_logits(values: list[int], scale: float, alpha: float) -> None:
    logits = torch.tensor([values], dtype=torch.float64) * scale
    p = entmax(logits, alpha)
    assert p.sum().item() == pytest.approx(1.0, abs=1e-9)
    if alpha <= 2:
        torch.testing.assert_close(p, of_package(logits, alpha), atol=1e-7, rtol=0)
    else:  # next to the threshold the package rounds, and then normalises all
        assert_maximal(p, logits, alpha)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", LARGE_ALPHAS)
@pytest.mark.parametrize("scale", [1e-4, 0.01, 1.0, 10.0])
def test_above_two_it_is_the_maximum_although_rounding_hides_the_threshold(
    alpha: float, scale: float
) -> None:
    """The package rounds s - τ, of which a 49th root is taken, and divides by the sum that comes of it (up to
    5.6 here): it is compared where that sum is 1."""
    torch.manual_seed(1)
    logits = torch.cat([torch.randn(15, 30), torch.randn(15, 30).round()]).double() * scale
    p = entmax(logits, alpha)
    torch.testing.assert_close(p.sum(1), torch.ones(30).double(), atol=1e-12, rtol=0)
    assert_maximal(p, logits, alpha)

    theirs = package.entmax_bisect(logits, alpha, -1, n_iter=100, ensure_sum_one=False)
    sure = (theirs.sum(1) - 1).abs() < 1e-9
    assert sure.any()
    torch.testing.assert_close(p[sure], theirs[sure], atol=1e-8, rtol=0)


def test_near_one_it_is_softmax_in_fp32_too() -> None:
    torch.manual_seed(1)
    logits = torch.randn(5, 400) * 3
    torch.testing.assert_close(
        objective(1.000001).log_scores(logits).exp(), logits.softmax(1), atol=2e-6, rtol=0
    )
    exact = package.entmax_bisect(logits.double(), 1.001, -1, n_iter=100)
    bias = logits[0].clone().requires_grad_()
    loss = objective(1.001).loss(torch.zeros(1, 1), torch.zeros(400, 1), bias, torch.tensor([0]))
    (gradient,) = torch.autograd.grad(loss, bias)
    gradient[0] += 1
    torch.testing.assert_close(gradient.double(), exact[0], atol=1e-7, rtol=0)
    torch.testing.assert_close(objective(1.001).log_scores(logits).exp().double(), exact, atol=1e-7, rtol=0)


@given(st.integers(0, 10**6), st.integers(1, 60), st.floats(1.02, 2.0), st.sampled_from([0.01, 1.0, 20.0]))
def test_newton_ends_where_bisection_does(seed: int, size: int, alpha: float, scale: float) -> None:
    """Bisection is right for every β; Newton's steps are proved for β ≥ 1."""
    scores = torch.randn(4, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale
    scores -= scores.amax(1, keepdim=True)
    beta, start = 1 / (alpha - 1), torch.full((4, 1), -1.0, dtype=torch.float64)
    torch.testing.assert_close(
        newton(scores, beta, start), bisection(scores, beta)[0], atol=1e-12, rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ALPHAS)
def test_gathering_candidates_changes_nothing(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    logits = torch.cat([torch.randn(6, 190) * scale for scale in (0.1, 3.0, 30.0)])
    results = []
    for share in (0.0, 1.0):  # never gathered, always gathered
        monkeypatch.setattr("creamtea_workers.objectives.entmax.MAX_CANDIDATES", share)
        results.append((objective(alpha).log_scores(logits), entmax(logits.double(), alpha)))
    torch.testing.assert_close(results[0][0].exp(), results[1][0].exp(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(results[0][1], results[1][1])


@given(st.integers(0, 10**6), st.integers(1, 200), st.sampled_from(ALPHAS), st.sampled_from([0.01, 1.0, 9.0]))
def test_the_block_maxima_bound_the_threshold(seed: int, size: int, alpha: float, scale: float) -> None:
    scores = torch.randn(4, size, generator=torch.Generator().manual_seed(seed)) * scale
    scores -= scores.amax(1, keepdim=True)
    start = torch.full((4, 1), -1.0)
    bound = threshold(block_maxima(scores), alpha, start)
    assert (bound - MARGIN < threshold(scores, alpha, start)).all()


def test_candidates_are_padded_below_the_support() -> None:
    scores = torch.tensor([[0.0, -3.0, -0.5, -1.0, -2.0, -5, -5, -5], [-9.0, 0.0, -9, -9, -9, -9, -9, -9]])
    found = Candidates.above(scores, torch.tensor([[-1.0], [-1.5]]))
    assert found.scores.tolist() == [[0.0, -0.5], [0.0, -1.0]]
    put = found.put_(torch.tensor([[1.0, 2.0], [3.0, 9.0]]), scores.clone(), 7.0)
    assert put.tolist() == [[1.0, 7, 2, 7, 7, 7, 7, 7], [7.0, 3, 7, 7, 7, 7, 7, 7]]


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0, 3.0])
def test_large_logits_lose_no_digits_in_fp32(alpha: float) -> None:
    torch.manual_seed(1)
    logits = torch.randn(8, 300) + 3000
    scores = objective(alpha).log_scores(logits).exp()
    exact = package.entmax_bisect(logits.double(), alpha, -1, n_iter=100)
    torch.testing.assert_close(scores.double(), exact, atol=1e-5, rtol=0)
    torch.testing.assert_close(scores.sum(1), torch.ones(8), atol=1e-5, rtol=0)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_log_scores_are_minus_infinity_exactly_off_the_support(alpha: float) -> None:
    torch.manual_seed(1)
    logits = torch.randn(20, 60) * 2
    scores = objective(alpha).log_scores(logits)
    p = of_package(logits.double(), alpha)
    sure = (p > 1e-6) | (p == 0)  # at the edge of the support rounding decides
    assert torch.equal((scores == -math.inf)[sure], (p == 0)[sure])
    torch.testing.assert_close(scores.double().exp(), p, atol=1e-5, rtol=1e-4)


def test_masked_logits_are_off_the_support() -> None:
    """Where the entmax package gives NaN: -inf is no candidate, and the others are as without it."""
    torch.manual_seed(1)
    logits = torch.randn(3, 50)
    masked = torch.cat([logits, torch.full((3, 5), -math.inf)], 1)
    scores = objective(1.5).log_scores(masked)
    torch.testing.assert_close(scores[:, :50], objective(1.5).log_scores(logits))
    assert (scores[:, 50:] == -math.inf).all()


@pytest.mark.parametrize("alpha", sorted({*ALPHAS, *LARGE_ALPHAS}))
def test_the_loss_of_what_is_no_number_is_none(alpha: float) -> None:
    """So that the training can say so."""
    made, logits = objective(alpha), torch.full((3, 50), math.nan)
    loss, gradient = made.loss_and_gradient(logits, torch.tensor([1, 2, 3]))
    assert math.isnan(loss.item())
    assert gradient.shape == (3, 50)


@pytest.mark.parametrize("alpha", sorted({*ALPHAS, *LARGE_ALPHAS}))
def test_the_conjugate_is_the_maximum(alpha: float) -> None:
    """Ω*(z) = max_p p·z - Ω(p): what entmax reaches, and no other distribution exceeds. Ω*(z) is the loss
    plus z_y, as Ω(e_y) = 0."""
    torch.manual_seed(1)
    logits = torch.randn(50, dtype=torch.float64) * 2

    def value(p: torch.Tensor) -> torch.Tensor:
        return (p * logits).sum(-1) - ((p**alpha).sum(-1) - 1) / (alpha * (alpha - 1))

    hidden, weight = torch.zeros(1, 1).double(), torch.zeros(50, 1).double()
    highest = objective(alpha).loss(hidden, weight, logits, torch.tensor([7])) + logits[7]
    p = entmax(logits[None], alpha)[0]
    torch.testing.assert_close(highest, value(p / p.sum()))  # α near 1 divides what is missing to 1 by α - 1
    others = torch.distributions.Dirichlet(torch.full((50,), 0.3).double()).sample((50,))
    assert (value(others) < highest).all()
