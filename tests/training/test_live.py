"""What a training shows of itself while it runs."""

from __future__ import annotations

from pathlib import Path

import torch
from small_trainings import development, parameters, reversals
from step_context import FolderCheckpoints

from creamtea.contract.step import LiveView
from creamtea_workers.training.evaluate import MAX_LOSSES, RUNNING_LOSS, LiveTraining, thinned
from creamtea_workers.training.trainer import Trainer


def test_curves_examples_and_speed_are_shown(tmp_path: Path) -> None:
    pairs = reversals(60, 5, seed=3)
    held_out = development(reversals(20, 5, seed=9))
    texts = ["a source", "another"]
    held_out = type(held_out)(held_out.pairs, held_out.references, held_out.subwords, sources=texts)
    views: list[LiveView] = []
    params = parameters({"batch_tokens": 100, "max_updates": 45, "validate_every": 20, "warmup": 5})
    trainer = Trainer(
        params,
        pairs,
        held_out,
        torch.device("cpu"),
        FolderCheckpoints(tmp_path / "checkpoints"),
        lambda *_: None,
        show=views.append,
    )
    result = trainer.run()
    last = views[-1]
    series = {point.series for point in last.points}
    assert {"train_loss", "dev_loss", "dev_bleu", RUNNING_LOSS} <= series
    # the same sum as the training loss of the validation, over the same tokens
    running = [point.y for point in last.points if (point.series, point.x) == (RUNNING_LOSS, 20)]
    validated = [y for name, x, y in result.position.points if (name, x) == ("train_loss", 20)]
    assert running == validated
    assert [example.source for example in last.examples] == texts
    assert [update for update, _ in last.examples[0].outputs] == [20, 40, 45]
    assert last.tokens_per_second is not None
    assert last.tokens_per_second > 0


def test_views_are_seconds_apart_but_for_new_translations() -> None:
    from creamtea_workers.training.checkpoint import Position

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
