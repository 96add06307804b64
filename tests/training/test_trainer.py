"""The training loop: it learns, stops, averages, and resumes bit by bit."""

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_trainings import development, parameters, reversals, trained_twice, trainer
from step_context import FolderCheckpoints

from creamtea.contract.step import GaveWay, LiveView
from creamtea.errors import StepError
from creamtea.methods.training import Keep
from creamtea_workers.training import trainer as trainer_module
from creamtea_workers.training.checkpoint import Best, Position, Saver, average_best, keep_best, slot_name
from creamtea_workers.training.evaluate import MAX_LOSSES, RUNNING_LOSS, Evaluation, LiveTraining, thinned
from creamtea_workers.training.trainer import Trainer, TrainingResult

pytestmark = pytest.mark.slow

PAIRS = reversals(60, 5, seed=1)
SHORT = {"batch_tokens": 60, "learning_rate": 0.003, "warmup": 10, "max_epochs": 3, "checkpoint_every": 7}


def series(outcome: TrainingResult) -> list[tuple[str, int, float]]:
    return outcome.position.points


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrainingResult]:
    """A training's checkpoints and its end."""
    folder = tmp_path_factory.mktemp("short")
    return folder, trainer(parameters(SHORT), PAIRS, folder).run()


@pytest.mark.parametrize(
    ("objective", "architecture"),
    [
        ({"kind": "softmax", "label_smoothing": 0.1}, {}),
        ({"kind": "scones", "alpha": 0.5}, {}),
        ({"kind": "entmax", "label_smoothing": 0.05}, {"kind": "ssru"}),
    ],
    ids=lambda part: part.get("kind", "transformer"),
)
def test_learns_to_reverse(objective: dict[str, Any], architecture: dict[str, Any], tmp_path: Path) -> None:
    training = {"batch_tokens": 128, "learning_rate": 0.004, "warmup": 80, "max_epochs": 6, "average": 2}
    sizes = {"width": 64, "dropout": 0.0}
    params = parameters({**training, "autocast": "none"}, {**architecture, **sizes}, objective=objective)
    outcome = trainer(params, reversals(1500, 5, seed=1), tmp_path, reversals(100, 5, seed=2)).run()
    assert outcome.evaluation.bleu > 70


@pytest.mark.parametrize(("autocast", "validate_every"), [("none", 5), ("bf16", None)])
def test_an_interrupted_training_ends_with_the_same_bits(
    autocast: str, validate_every: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer_module, "REPORT_EVERY", 1)  # may die at any update
    pairs = reversals(150, 6, seed=1)
    training = {**SHORT, "average": 2, "autocast": autocast, "validate_every": validate_every}
    params = parameters(training, nvs={"positive_weight": 10.0})
    whole, pieces = trained_twice(params, pairs, tmp_path, [1, 8, 15, -1])
    assert series(whole) == series(pieces)
    assert whole.evaluation == pieces.evaluation
    assert whole.position.best == pieces.position.best


def test_a_training_gives_way_after_a_checkpoint_and_goes_on_with_the_same_bits(
    short: tuple[Path, TrainingResult], tmp_path: Path
) -> None:
    params, (_, whole) = parameters(SHORT), short
    asked: list[int] = []
    made = trainer(params, PAIRS, tmp_path)

    def has_more_room() -> bool:
        asked.append(made.state.update)
        return len(asked) == 3

    made.has_more_room = has_more_room
    with pytest.raises(GaveWay):
        made.run()
    assert 0 < asked[0] < asked[2] == made.state.update < whole.position.update
    resumed = trainer(params, PAIRS, tmp_path)
    resumed.resume()
    assert resumed.state.update == asked[2]
    weights = trainer(params, PAIRS, tmp_path).run().model.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in whole.model.state_dict().items())


def test_packed_batches_resume_with_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, with bf16 copies of the matrices; here by operations that are the same each time."""
    resume = Trainer.resume

    def packed(self: Trainer) -> None:
        self.pack()
        resume(self)

    monkeypatch.setattr(Trainer, "resume", packed)
    monkeypatch.setattr(trainer_module, "REPORT_EVERY", 1)
    params = parameters(
        {**SHORT, "accumulate": 2, "max_epochs": 2},
        {"dropout": 0.1, "attention_dropout": 0.1},
        nvs={"positive_weight": 10.0},
    )
    pairs = reversals(70, 6, seed=1)
    whole, pieces = trained_twice(params, pairs, tmp_path, [2, -1])
    assert series(whole) == series(pieces)


def test_everything_else_resumes_with_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SSRUs, LAMB, several batches an update, an automatic NVS weight."""
    monkeypatch.setattr(trainer_module, "REPORT_EVERY", 1)
    training = {**SHORT, "accumulate": 2, "optimizer": "lamb", "weight_decay": 0.01, "schedule": "noam"}
    params = parameters(training, {"kind": "ssru"}, nvs={"positive_weight": 1.0, "auto_weight": 10.0})
    pairs = reversals(150, 6, seed=1)
    whole, pieces = trained_twice(params, pairs, tmp_path, [2, 9, -1])
    assert series(whole) == series(pieces)


def test_two_batches_an_update_are_one_of_both(tmp_path: Path) -> None:
    """Gradients and losses, to rounding, of batches with other lengths and padding; weights after the update
    would compare Adam's signs of gradients that are zero but for rounding."""
    training = {"batch_tokens": 100, "autocast": "none", "accumulate": 2}
    params = parameters(training, {"dropout": 0.0}, nvs={"positive_weight": 10.0})
    pairs = reversals(40, 9, seed=1)
    members = np.arange(40)
    found = []
    for batches in ([members[:25], members[25:]], [members]):
        made = trainer(params, pairs, tmp_path)
        losses = made.accumulate(batches)
        found.append([losses, *(parameter.grad for parameter in made.model.parameters())])
    for two, one in zip(*found, strict=True):
        torch.testing.assert_close(two, one, atol=1e-6, rtol=1e-4)


def test_several_batches_an_update_see_every_pair_once_an_epoch(tmp_path: Path) -> None:
    pairs = reversals(150, 6, seed=1)
    params = parameters({**SHORT, "max_epochs": 2, "accumulate": 4})
    made = trainer(params, pairs, tmp_path)
    outcome = made.run()
    batches = [len(made.plan_of(epoch)) for epoch in (0, 1)]
    assert outcome.position.update == sum(math.ceil(number / 4) for number in batches) == made.total
    assert any(number % 4 for number in batches)  # an update of fewer ends an epoch
    assert outcome.position.tokens == 2 * pairs.target_lengths.sum()


@pytest.mark.parametrize(
    "training",
    [{"clip": 0.05}, {"optimizer": "lamb", "clip": 0.05, "autocast": "none", "accumulate": 2}],
    ids=["adam", "lamb"],
)
def test_an_nvs_head_changes_no_other_weight(tmp_path: Path, training: dict[str, Any]) -> None:
    found = {}
    for name, nvs in (("plain", None), ("head", {"positive_weight": 100.0, "clip": 0.5})):
        outcome = trainer(parameters({**SHORT, **training}, nvs=nvs), PAIRS, tmp_path / name).run()
        found[name] = outcome.model.state_dict(), series(outcome)
    (plain, plain_curves), (head, head_curves) = found["plain"], found["head"]
    assert set(head) - set(plain) == {"nvs.weight", "nvs.bias"}
    for name, weight in plain.items():
        assert torch.equal(weight, head[name]), name
    assert plain_curves == head_curves
    assert head["nvs.bias"].abs().max() > 0  # it has learnt


def test_an_nvs_head_that_is_not_detached_trains_the_encoder_alone(tmp_path: Path) -> None:
    """After one update: later ones change the decoder, too, by way of what it reads."""
    one = {"max_updates": 1, "clip": 1000.0, "autocast": "none"}
    states = []
    for name, detach in (("blocked", True), ("joint", False)):
        params = parameters({**SHORT, **one}, nvs={"positive_weight": 100.0, "detach": detach})
        loop = trainer(params, PAIRS, tmp_path / name)
        loop.plan_of(0)
        loop.accumulate(loop.next_batches())
        states.append({key: weight.grad for key, weight in loop.model.named_parameters()})
    blocked, joint = states
    differing = {key for key in blocked if not torch.equal(blocked[key], joint[key])}
    shared = {"embedding.weight"}  # of source and target
    assert differing - shared == {key for key in blocked if key.startswith("encoder")}


def test_a_finished_training_has_its_curves_and_only_averages_again(
    short: tuple[Path, TrainingResult],
) -> None:
    folder, first = short
    names = {"train_loss", "dev_loss", "dev_perplexity", "dev_bleu", "learning_rate"}
    assert {name for name, _, _ in series(first)} == names
    updates = sorted({update for _, update, _ in series(first)})
    assert len(updates) == 3  # an epoch each
    assert (updates[-1], first.stopped) == (first.position.update, "max_epochs")
    again = trainer(parameters(SHORT), PAIRS, folder)
    outcome = again.run()
    assert again.losses == []
    assert (outcome.position, outcome.evaluation) == (first.position, first.evaluation)


def test_the_seed_changes_weights_data_order_and_dropout(
    short: tuple[Path, TrainingResult], tmp_path: Path
) -> None:
    other = trainer(parameters(SHORT, seed=2), PAIRS, tmp_path).run()
    assert other.evaluation.loss != short[1].evaluation.loss


def test_max_updates_ends_with_a_validation(tmp_path: Path) -> None:
    training = {**SHORT, "max_updates": 4, "max_epochs": None}
    outcome = trainer(parameters(training), PAIRS, tmp_path).run()
    assert (outcome.stopped, outcome.position.update, outcome.position.validated) == ("max_updates", 4, 4)


def test_stops_when_the_development_loss_no_longer_falls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([3.0, 2.0, 2.5, 2.1, 1.9, 2.0, 2.0, 2.0, 9.0])
    monkeypatch.setattr(trainer_module, "evaluate", lambda *_: Evaluation(next(losses), 1.0, 0.0))
    training = {**SHORT, "validate_every": 1, "patience": 3, "average": 3}
    outcome = trainer(parameters(training), PAIRS, tmp_path).run()
    assert outcome.stopped == "patience"
    assert outcome.position.update == 8
    assert [(best.loss, best.update) for best in outcome.position.best] == [(1.9, 5), (2.0, 2), (2.0, 6)]


def test_a_loss_that_is_no_number_names_its_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever in the interval between two looks it happens."""
    made = trainer(parameters(SHORT), reversals(300, 5, seed=1), tmp_path)
    losses_of = made.losses_of

    def poisoned(*arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
        loss, translation = losses_of(*arguments)
        return loss * (math.nan if made.state.update >= 3 else 1.0), translation

    monkeypatch.setattr(made, "losses_of", poisoned)
    with pytest.raises(StepError, match=r"loss is nan at update 3: lower training\.learning_rate"):
        made.run()


@pytest.mark.parametrize(
    ("keep", "kept", "mean"), [("best", [(2.0, 5), (3.0, 2)], 3.5), ("last", [(7.0, 6), (2.0, 5)], 5.5)]
)
def test_the_average_is_the_mean_of_the_best(
    keep: Keep, kept: list[tuple[float, int]], mean: float, tmp_path: Path
) -> None:
    saver = Saver(FolderCheckpoints(tmp_path))
    best: list[Best] = []
    for update, loss in enumerate([5.0, 3.0, 4.0, 6.0, 2.0, 7.0], start=1):
        model = {"weight": torch.full((3,), float(update))}
        best = keep_best(saver, best, 2, loss, update, model, keep)
    assert [(one.loss, one.update) for one in best] == kept
    assert torch.equal(average_best(saver, best)["weight"], torch.full((3,), mean))


def test_a_new_best_overwrites_nothing_that_the_last_checkpoint_names(tmp_path: Path) -> None:
    saver = Saver(FolderCheckpoints(tmp_path))
    best: list[Best] = []
    for update, loss in enumerate([5.0, 3.0, 4.0, 2.0, 1.0, 0.5], start=1):
        before = {one.slot: (tmp_path / slot_name(one.slot)).read_bytes() for one in best}
        best = keep_best(saver, best, 2, loss, update, {"weight": torch.full((3,), float(update))})
        saver.wait()
        for slot, content in before.items():
            assert (tmp_path / slot_name(slot)).read_bytes() == content


# ---------------------------------------------------------------- what a training shows


def test_curves_examples_and_speed_are_shown(tmp_path: Path) -> None:
    texts, views = ["a source", "another"], []
    params = parameters({"batch_tokens": 100, "max_updates": 45, "validate_every": 20, "warmup": 5})
    held_out = replace(development(reversals(20, 5, seed=9)), sources=texts)
    made = Trainer(
        params, PAIRS, held_out, torch.device("cpu"),
        FolderCheckpoints(tmp_path), lambda *_: None, show=views.append,
    )  # fmt: skip
    result, last = made.run(), views[-1]
    assert {"train_loss", "dev_loss", "dev_bleu", RUNNING_LOSS} <= {point.series for point in last.points}
    # the same sum as the training loss of the validation, over the same tokens
    running = [point.y for point in last.points if (point.series, point.x) == (RUNNING_LOSS, 20)]
    validated = [y for name, x, y in result.position.points if (name, x) == ("train_loss", 20)]
    assert running == validated
    assert [example.source for example in last.examples] == texts
    assert [update for update, _ in last.examples[0].outputs] == [20, 40, 45]
    assert last.tokens_per_second > 0


def test_views_are_seconds_apart_but_for_new_translations() -> None:
    views: list[LiveView] = []
    live = LiveTraining(development(reversals(4, 3, seed=1)), views.append)
    for _ in range(5):
        live.refresh(Position(), 1.0)
    live.add_translations(3, [])
    live.refresh(Position(), 1.0)
    assert len(views) == 2


def test_long_curves_keep_their_ends() -> None:
    items: list[int] = []
    for number in range(5 * MAX_LOSSES):
        items = thinned([*items, number], MAX_LOSSES)
    assert (items[0], items[-1]) == (0, 5 * MAX_LOSSES - 1)
    assert MAX_LOSSES / 2 <= len(items) <= MAX_LOSSES
    assert items == sorted(set(items))


# ---------------------------------------------------------------- speed


@pytest.mark.parametrize("length", [1.0, 8.0])
def test_updates_of_a_shape_are_timed(length: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer_module, "SECONDS", 0.05)
    architecture = {"encoder_layers": 1, "decoder_layers": 1, "width": 32, "heads": 4, "feed_forward": 64}
    speeds = trainer_module.tokens_per_second(architecture, 100, 64, length, threads=1)
    assert speeds.keys() == {"bf16", "none"}
    assert all(len(rounds) == trainer_module.ROUNDS and min(rounds) > 0 for rounds in speeds.values())


# ---------------------------------------------------------------- waiting threads


TORCH = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')"  # itself, it takes seconds
CHECK = """
import os
print(os.environ["OMP_WAIT_POLICY"], os.environ["GOMP_SPINCOUNT"])
"""


@pytest.mark.parametrize(
    "imports, warned",
    [
        (f"import creamtea_workers; {TORCH}", False),
        (f"import creamtea; {TORCH}; import creamtea_workers", False),
        (f"{TORCH}; import creamtea_workers", True),
    ],
    ids=["workers first", "platform first", "torch first"],
)
def test_the_setting_is_made_in_time_or_a_warning_says_so(imports: str, warned: bool) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    command = [sys.executable, "-W", "always", "-c", imports + CHECK]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["PASSIVE", "5000"]
    assert ("torch was imported before creamtea" in done.stderr) is warned
