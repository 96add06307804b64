"""Trainings that start from another variant's model."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from small_trainings import parameters, reversals, trained_twice, trainer
from torch.nn import functional as F

from creamtea.errors import StepError
from creamtea_workers.corpora.batches import Pairs
from creamtea_workers.models.interface import BOS, PAD, output_logits
from creamtea_workers.models.marian import NEVER
from creamtea_workers.models.model import save_model
from creamtea_workers.training import trainer as trainer_module
from creamtea_workers.training.trainer import TrainingResult

HEAD = {"positive_weight": 10.0}
TUNING = {"batch_tokens": 60, "schedule": "constant", "warmup": 0, "max_epochs": 2, "autocast": "none"}
PAIRS = reversals(40, 5, seed=3)


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("parent"), None)


@pytest.fixture(scope="module")
def parent_with_head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("head"), HEAD)


def trained(folder: Path, nvs: dict[str, Any] | None) -> Path:
    """The output of a short training."""
    params = parameters({"batch_tokens": 60, "warmup": 5, "max_updates": 10, "autocast": "none"}, nvs=nvs)
    made = trainer(params, PAIRS, folder / "checkpoints")
    save_model(folder, made.run().model, made.config)
    return folder


def adapted(parent: Path, folder: Path, pairs: Pairs = PAIRS, **changes: Any) -> TrainingResult:
    nvs = changes.pop("nvs", None)
    return trainer(parameters({**TUNING, **changes}, nvs=nvs), pairs, folder, initial=parent).run()


def dev_losses(outcome: TrainingResult) -> dict[int, float]:
    return {update: y for name, update, y in outcome.position.points if name == "dev_loss"}


@pytest.mark.parametrize("nvs", [None, HEAD], ids=["plain", "with head"])
def test_starts_with_all_of_the_weights(nvs: dict[str, Any] | None, tmp_path: Path, request: Any) -> None:
    parent = request.getfixturevalue("parent_with_head" if nvs else "parent")
    made = trainer(parameters(TUNING, nvs=nvs), PAIRS, tmp_path, initial=parent)
    weights = load_file(parent / "model.safetensors")
    assert set(weights) == set(made.model.state_dict())
    assert all(torch.equal(value, weights[name]) for name, value in made.model.state_dict().items())
    assert made.optimiser.state_dict()["state"] == {}


def test_learns_the_new_text(parent: Path, tmp_path: Path) -> None:
    outcome = adapted(parent, tmp_path, learning_rate=0.003, average=1)
    losses = dev_losses(outcome)
    assert next(iter(losses)) == 0
    assert outcome.evaluation.loss == pytest.approx(min(losses.values()))
    assert outcome.evaluation.loss < losses[0]


def test_never_ends_worse_than_it_started(parent: Path, tmp_path: Path) -> None:
    """At a rate that destroys the model, the best is the one that it started from."""
    outcome = adapted(parent, tmp_path, learning_rate=0.5)
    assert min(loss for update, loss in dev_losses(outcome).items() if update > 0) > dev_losses(outcome)[0]
    assert [best.update for best in outcome.position.best] == [0]
    weights = load_file(parent / "model.safetensors")
    assert all(torch.equal(value, weights[name]) for name, value in outcome.model.state_dict().items())


def test_the_last_is_kept_where_the_study_says_so(parent: Path, tmp_path: Path) -> None:
    """At a rate that destroys the model, and though the development loss was lowest at the start."""
    outcome = adapted(parent, tmp_path, learning_rate=0.5, keep="last", patience=100)
    assert [best.update for best in outcome.position.best] == [outcome.position.update]
    assert 0 not in dev_losses(outcome)
    assert outcome.evaluation.loss == pytest.approx(list(dev_losses(outcome).values())[-1])


def test_before_the_first_update_there_is_no_training_loss(parent: Path, tmp_path: Path) -> None:
    points = adapted(parent, tmp_path, learning_rate=0.001, max_updates=1).position.points
    assert {name for name, update, _ in points if update == 0} == {"dev_loss", "dev_perplexity", "dev_bleu"}


def test_patience_counts_from_the_start(parent: Path, tmp_path: Path) -> None:
    outcome = adapted(parent, tmp_path, learning_rate=0.5, validate_every=1, patience=2, max_epochs=None)
    assert (outcome.stopped, outcome.position.update) == ("patience", 2)


@pytest.mark.parametrize(
    ("training", "changes"),
    [
        ({"learning_rate": 0.003, "average": 2}, {}),
        ({"learning_rate": 0.02, "average": 2, "freeze": "translation"}, {"nvs": HEAD}),
        ({"fit_logits": True}, {"objective": {"kind": "scones", "alpha": 0.5}}),
    ],
    ids=["all", "the head alone", "fitted logits"],
)
def test_resumes_with_the_same_bits(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, training: Any, changes: Any
) -> None:
    monkeypatch.setattr(trainer_module, "REPORT_EVERY", 1)
    params = parameters({**TUNING, **training, "checkpoint_every": 3}, **changes)
    whole, pieces = trained_twice(params, PAIRS, tmp_path, [0, 1, 5, -1], parent)
    assert whole.position.points == pieces.position.points
    assert whole.position.best == pieces.position.best


def test_a_new_nvs_head_is_trained_before_a_model_can_be_the_best(parent: Path, tmp_path: Path) -> None:
    """The development loss says nothing of the head: by it, update 0 would win here."""
    outcome = adapted(parent, tmp_path, nvs=HEAD, learning_rate=0.5)
    assert all(best.update > 0 for best in outcome.position.best)
    assert 0 not in dev_losses(outcome)


def test_symbols_that_an_imported_model_never_produces_cost_nothing(parent: Path, tmp_path: Path) -> None:
    """The loss is that of a model without these symbols, whose smoothed labels the other symbols share."""
    weights = load_file(parent / "model.safetensors")
    weights["output_bias"][[PAD, BOS]] = NEVER
    shutil.copy(parent / "model.json", tmp_path)
    save_file(weights, tmp_path / "model.safetensors")
    objective = {"kind": "softmax", "label_smoothing": 0.01}
    made = trainer(parameters(TUNING, objective=objective), PAIRS, tmp_path / "made", initial=tmp_path)
    with torch.no_grad():
        logits, targets = logits_of(made.model.eval(), made.development.pairs)
        ids = torch.tensor([id_ for id_ in range(logits.shape[1]) if id_ not in (PAD, BOS)])
        wanted = F.cross_entropy(logits[:, ids], torch.searchsorted(ids, targets), label_smoothing=0.01)
        assert made.evaluate().loss == pytest.approx(float(wanted), abs=0.2)
        assert logits.softmax(1)[:, [PAD, BOS]].max() < 1e-30


def test_another_dropout_is_not_another_model(parent: Path, tmp_path: Path) -> None:
    made = trainer(parameters(TUNING, {"dropout": 0.5}), PAIRS, tmp_path, initial=parent)
    assert made.validates_initial
    weights = load_file(parent / "model.safetensors")
    assert all(torch.equal(value, weights[name]) for name, value in made.model.state_dict().items())


@pytest.mark.parametrize(
    ("name", "architecture", "message"),
    [
        (
            "parent",
            {"feed_forward": 48},
            r"starts from does not fit: decoder\.0\.feed\.inner\.bias is 64 there and 48 here; "
            r".* \(and 3 more\); give both the same subwords and architecture",
        ),
        ("parent", {"kind": "ssru"}, r"does not fit: it has no decoder\.0\.attention\.candidate\.weight"),
        ("parent_with_head", {}, r"its nvs\.bias has no place here; .*this one `nvs` if the other"),
    ],
    ids=["other sizes", "another decoder", "a head that would be dropped"],
)
def test_a_model_that_does_not_fit_is_refused(
    name: str, architecture: dict[str, Any], message: str, tmp_path: Path, request: Any
) -> None:
    with pytest.raises(StepError, match=message):
        trainer(parameters(TUNING, architecture), PAIRS, tmp_path, initial=request.getfixturevalue(name))


# ---------------------------------------------------------------- the head alone


def frozen(parent: Path, folder: Path, nvs: dict[str, Any] = HEAD, **changes: Any) -> TrainingResult:
    tuning = {**TUNING, "freeze": "translation", "learning_rate": 0.02, "checkpoint_every": 3, **changes}
    return trainer(parameters(tuning, nvs=nvs), PAIRS, folder, initial=parent).run()


@pytest.mark.parametrize("name", ["parent", "parent_with_head"])
def test_a_frozen_translation_model_keeps_its_bits(name: str, tmp_path: Path, request: Any) -> None:
    """Also where several models are averaged."""
    parent = request.getfixturevalue(name)
    outcome = frozen(parent, tmp_path, average=2)
    weights, own = load_file(parent / "model.safetensors"), outcome.model.state_dict()
    head = {key for key in own if key.startswith("nvs.")}
    assert all(torch.equal(own[key], weights[key]) for key in set(own) - head)
    assert not any(torch.equal(own[key], weights[key]) for key in head & set(weights))
    losses = dev_losses(outcome)
    assert (0 in losses) == (name == "parent_with_head")
    assert list(losses.values())[-1] < 0.9 * next(iter(losses.values()))


def test_the_head_alone_learns_what_it_would_beside_the_model(parent: Path, tmp_path: Path) -> None:
    """Its first update is that of a joint training without dropout."""
    made = [
        trainer(
            parameters({**TUNING, "learning_rate": 0.02, **changes}, {"dropout": 0.0}, nvs=HEAD),
            PAIRS,
            tmp_path / str(number),
            initial=parent,
        )
        for number, changes in enumerate(({}, {"freeze": "translation"}))
    ]
    for loop in made:
        loop.update(loop.next_batches())
    joint, alone = (loop.model.state_dict()["nvs.weight"] for loop in made)
    assert torch.allclose(joint, alone, atol=1e-6)


def test_only_the_head_has_gradients_moments_and_checkpoints(parent: Path, tmp_path: Path) -> None:
    params = parameters({**TUNING, "freeze": "translation", "max_updates": 3}, nvs=HEAD)
    made = trainer(params, PAIRS, tmp_path, initial=parent)
    made.run()
    kept = {name for name, weight in made.model.named_parameters() if weight.requires_grad}
    assert kept == {"nvs.weight", "nvs.bias"}
    assert len(made.optimiser.state_dict()["state"]) == 2
    for file in tmp_path.iterdir():
        content = torch.load(file, weights_only=True)
        assert set(content.get("model", content)) == kept, file.name


# ---------------------------------------------------------------- logits for another objective

OBJECTIVES = {"scones": {"kind": "scones", "alpha": 0.5}, "entmax": {"kind": "entmax"}}


def logits_of(model: Any, pairs: Pairs) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of all target positions (N, V), and the targets."""
    batch = pairs.batch(np.arange(len(pairs)))
    hidden, targets = batch.real(model.decode(model.encode(batch.source), batch.target_in))
    return output_logits(model, hidden), targets


@pytest.mark.slow
@pytest.mark.parametrize("name", OBJECTIVES)
def test_fitted_logits_have_the_lowest_loss_and_the_same_order(
    parent: Path, tmp_path: Path, name: str
) -> None:
    """Against a grid of factors and shifts; softmax has trained the model."""
    params = parameters({**TUNING, "fit_logits": True}, objective=OBJECTIVES[name])
    made = trainer(params, PAIRS, tmp_path, initial=parent)
    with torch.no_grad():
        made.model.output_bias.normal_()
        before, targets = logits_of(made.model.eval(), made.development.pairs)

        def loss(logits: torch.Tensor) -> float:
            return float(made.objective.loss_and_gradient(logits.clone(), targets)[0]) / len(targets)

        shifts = np.linspace(-6.0, 3.0, 19) if name == "scones" else [0.0]
        grid = [loss(before * factor + shift) for factor in np.geomspace(0.05, 4.0, 25) for shift in shifts]
        made.resume()
        fitted, _ = logits_of(made.model.eval(), made.development.pairs)
    factor, shift = np.polyfit(before.flatten(), fitted.flatten(), 1)
    torch.testing.assert_close(fitted, before * factor + shift, atol=1e-4, rtol=1e-4)
    assert loss(fitted) <= min(grid) + 1e-3
    assert loss(fitted) < loss(before)
    assert torch.equal(before.argmax(-1), fitted.argmax(-1))
