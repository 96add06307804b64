"""The NVS head and its loss against the formulas written out."""

import math

import pytest
import torch
from torch import Tensor

from creamtea_workers.models import nvs
from creamtea_workers.models.interface import BOS, EOS, PAD, Memory
from creamtea_workers.models.nvs import LOWEST, NvsHead, maximum_and_place, nvs_loss

VOCABULARY, WIDTH = 30, 8


def memory(*lengths: int) -> Memory:
    hidden = torch.randn(len(lengths), max(lengths), WIDTH, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return Memory(hidden, mask)


def written_out(head: NvsHead, encoded: Memory) -> Tensor:
    """Eq. 3 before the sigmoid, sentence by sentence."""
    rows = zip(encoded.hidden, encoded.mask, strict=True)
    return torch.stack([(hidden[mask] @ head.weight.T + head.bias).amax(0) for hidden, mask in rows])


@pytest.mark.parametrize("detach", [True, False])
@pytest.mark.parametrize("chunk", [1, 500, 2**22])
def test_logits_and_gradients(chunk: int, detach: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder has gradients where the head is not detached from it; padding has none."""
    monkeypatch.setattr(nvs, "CHUNK", chunk)
    torch.manual_seed(1)
    head, encoded = NvsHead(VOCABULARY, WIDTH, detach=detach).double(), memory(5, 2, 7)
    logits, expected = head(encoded), written_out(head, encoded)
    torch.testing.assert_close(logits, expected)
    weights, inputs = torch.randn_like(logits), [*head.parameters(), encoded.hidden]
    ours = torch.autograd.grad((logits * weights).sum(), inputs, allow_unused=True)
    theirs = torch.autograd.grad((expected * weights).sum(), inputs)
    assert (ours[-1] is None) == detach
    for a, b in zip(ours[: len(inputs) - detach], theirs, strict=False):
        torch.testing.assert_close(a, b)
    assert detach or not ours[-1][1, 2:].any()


def test_maximum_in_bf16_finds_value_and_position() -> None:
    torch.manual_seed(1)
    votes = (torch.randn(4, 300, 50) * 3).bfloat16()
    votes[0, 7:] = LOWEST
    top, place = maximum_and_place(votes)
    assert torch.equal(top, votes.float().amax(1))
    assert torch.equal(votes.gather(1, place.long()[:, None])[:, 0].float(), top)


@pytest.mark.parametrize(
    ("weight", "auto"), [(1.0, None), (100000.0, None), (7.0, 1.0), (7.0, 10.0), (7.0, 0.5)]
)
def test_loss_is_the_formula(weight: float, auto: float | None) -> None:
    torch.manual_seed(1)
    logits = torch.randn(2, VOCABULARY, dtype=torch.float64) * 5
    target = torch.tensor([[7, 8, 7, 9, EOS], [4, EOS, PAD, PAD, PAD]])
    total = 0.0
    for z, words in zip(logits.tolist(), ({7, 8, 9, EOS}, {4, EOS}), strict=True):
        positive = weight if auto is None else auto * (VOCABULARY - len(words)) / len(words)
        size = VOCABULARY + (positive - 1) * len(words)
        for v, logit in enumerate(z):
            p = 1 / (1 + math.exp(-logit))
            total -= (positive * math.log(p) if v in words else math.log(1 - p)) / size
    assert nvs_loss(logits, target, weight, auto).item() == pytest.approx(total / 2, rel=1e-9)


def test_the_automatic_weight_1_weighs_both_classes_alike() -> None:
    """Whatever the sentences' lengths: at logit 0 each class gives half of the loss."""
    target = torch.tensor([[5, 6, 7, 8, EOS], [4, EOS, PAD, PAD, PAD]])
    logits = torch.zeros(2, VOCABULARY, dtype=torch.float64, requires_grad=True)
    nvs_loss(logits, target, 1.0, auto_weight=1.0).backward()
    assert logits.grad is not None
    for gradient in logits.grad:
        assert gradient.clamp(max=0).sum().item() == pytest.approx(-gradient.clamp(min=0).sum().item())


def test_neither_padding_nor_bos_is_a_target_word() -> None:
    logits = torch.zeros(1, VOCABULARY)
    logits[0, [PAD, BOS]] = -100.0
    loss = nvs_loss(logits, torch.tensor([[5, EOS, PAD, PAD]]), 10.0).item()
    # two words at weight 10, twenty-six others at weight 1; the two at -100 cost nothing
    assert loss == pytest.approx(math.log(2) * (2 * 10 + 26) / (VOCABULARY + 9 * 2), rel=1e-6)


def test_extreme_logits_keep_their_gradient() -> None:
    logits = torch.full((1, VOCABULARY), -40.0, requires_grad=True)
    loss = nvs_loss(logits, torch.tensor([[5, EOS]]), 1.0)
    loss.backward()
    assert loss.item() == pytest.approx(2 * 40 / VOCABULARY)
    assert logits.grad[0, 5].item() == pytest.approx(-1 / VOCABULARY)
