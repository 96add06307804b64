"""What recipes of word-level tasks need: selection by a metric, plateaus, batches of sentences, clipping."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_trainings import Numbers, development, parameters, reversals, trained_twice, trainer

from creamtea.methods.training import Training
from creamtea_workers.corpora.batches import plan_epoch
from creamtea_workers.training import trainer as training_loop
from creamtea_workers.training.evaluate import Evaluation, evaluate, word_errors
from creamtea_workers.training.optimiser import learning_rate

PAIRS = reversals(80, 5, seed=1)
SHORT = {"batch_sentences": 20, "max_updates": 12, "validate_every": 2, "autocast": "none"}


def test_what_existing_studies_leave_out_is_not_in_their_keys() -> None:
    new = {"batch_sentences", "plateau_patience", "min_learning_rate", "clip_value", "select_by"}
    assert not new & set(Training().model_dump(mode="json"))
    given = {"batch_sentences": 5, "plateau_patience": 2, "min_learning_rate": 0.1, "clip_value": 1.0}
    assert new <= set(Training(**given, select_by="per", schedule="plateau").model_dump(mode="json"))


def test_batches_of_sentences_have_every_pair_once() -> None:
    batches = plan_epoch(PAIRS, 1, seed=1, epoch=0, batch_sentences=30)
    assert sorted(map(len, batches)) == [20, 30, 30]
    assert sorted(np.concatenate(batches).tolist()) == list(range(80))
    longest = sorted(max(PAIRS.target_lengths[batch]) for batch in batches)
    shortest = sorted(min(PAIRS.target_lengths[batch]) for batch in batches)
    assert all(most <= least for (most, _), (_, least) in pairwise(zip(longest, shortest, strict=True)))


def test_a_plateau_halves_the_rate() -> None:
    training = Training(schedule="plateau", learning_rate=0.8, warmup=4)
    rates = [
        learning_rate(update, training, 16, halvings) for update, halvings in ((2, 0), (4, 0), (9, 0), (9, 3))
    ]
    assert rates == pytest.approx([0.4, 0.8, 0.8, 0.1])


def run_with(losses: list[float], monkeypatch: pytest.MonkeyPatch, folder: Path, **training: Any) -> Any:
    """A training whose validations find these losses."""
    left = iter([*losses, *losses[-1:] * 99])
    monkeypatch.setattr(training_loop, "evaluate", lambda *_: Evaluation(next(left), 1.0, 0.0))
    recipe = {"schedule": "plateau", "warmup": 0, "learning_rate": 0.004, "patience": 99}
    return trainer(parameters({**SHORT, **recipe, **training}), PAIRS, folder).run()


def test_the_rate_is_halved_after_more_validations_than_patience(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As torch's ReduceLROnPlateau."""
    losses = [5.0, 4.0, 4.5, 4.2, 3.0, 3.1, 3.2, 3.3, 3.4, 3.5]
    outcome = run_with(losses, monkeypatch, tmp_path, max_updates=20)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([weight], lr=0.004)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=1, threshold=0.0)
    wanted = []
    for loss in losses:
        wanted.append(optimiser.param_groups[0]["lr"])
        theirs.step(loss)
    rates = [y for name, _, y in outcome.position.points if name == "learning_rate"]
    assert rates[:10] == pytest.approx(wanted)
    assert min(wanted) < 0.004 / 4


def test_a_rate_below_the_lowest_ends_the_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lowest = {"max_updates": 99, "plateau_patience": 0, "min_learning_rate": 0.001}
    outcome = run_with([1.0, 2.0, 2.0, 2.0, 2.0], monkeypatch, tmp_path, **lowest)
    assert (outcome.stopped, outcome.position.update) == ("min_learning_rate", 8)  # 0.004, … 0.0005


def test_errors_are_means_over_languages() -> None:
    references, groups = ["a b", "c d", "e f g h"], ["x", "x", "y"]
    pairs = development(reversals(3, 3, seed=2))
    words = replace(pairs, references=references, select_by="per", groups=groups)
    assert word_errors(["a b", "c", "e f g x"], words) == pytest.approx((25 + 25) / 2)
    assert word_errors(["a b", "c", "e f g x"], replace(words, groups=())) == pytest.approx(100 * 2 / 8)
    assert word_errors(["", "", ""], replace(words, select_by="loss")) is None


@pytest.mark.parametrize("select_by", ["per", "levenshtein", "bleu", "perplexity"])
def test_the_best_model_is_the_best_by_the_metric(select_by: Any, tmp_path: Path) -> None:
    params = parameters({**SHORT, "learning_rate": 0.01, "warmup": 4, "select_by": select_by})
    held_out = replace(development(reversals(20, 5, seed=9)), select_by=select_by)
    loop = trainer(params, PAIRS, tmp_path)
    loop.development = held_out
    outcome = loop.run()
    found = [y for name, _, y in outcome.position.points if name == f"dev_{select_by}"]
    best = max(found) if select_by == "bleu" else min(found)
    assert len(found) == 6
    evaluation = evaluate(outcome.model, loop.objective, held_out, torch.device("cpu"))
    values = {"bleu": evaluation.bleu, "perplexity": evaluation.perplexity}
    value = values.get(select_by, evaluation.errors)
    assert value == pytest.approx(best)
    assert outcome.evaluation.rank(select_by) == pytest.approx(-best if select_by == "bleu" else best)


def test_gradients_are_clipped_number_by_number(tmp_path: Path) -> None:
    loop = trainer(parameters({**SHORT, "clip_value": 0.001}), PAIRS, tmp_path)
    loop.plan_of(0)
    loop.accumulate(loop.next_batches())
    before = {name: weight.grad.clone() for name, weight in loop.model.named_parameters()}
    assert max(gradient.abs().max() for gradient in before.values()) > 0.001
    loop.clip_gradients()
    for name, weight in loop.model.named_parameters():
        assert torch.equal(weight.grad, before[name].clamp(-0.001, 0.001))


@pytest.mark.slow
def test_a_resumed_training_of_words_ends_with_the_same_weights(tmp_path: Path) -> None:
    recipe = {**SHORT, "schedule": "plateau", "warmup": 0, "plateau_patience": 0, "clip_value": 0.5}
    params = parameters(recipe, {"kind": "rnn", "width": 16, "embedding": 8, "dropout": 0.2})
    whole, pieces = trained_twice(params, PAIRS, tmp_path, [3, 7])
    assert whole.position.halvings == pieces.position.halvings


@pytest.mark.slow
def test_a_recurrent_model_learns_to_reverse(tmp_path: Path) -> None:
    recipe = {**SHORT, "batch_sentences": 40, "max_updates": 150, "validate_every": 150, "clip_value": 1.0}
    recipe |= {"schedule": "constant", "warmup": 0, "learning_rate": 0.01, "select_by": "per"}
    params = parameters(recipe, {"kind": "rnn", "width": 48, "embedding": 24, "dropout": 0.0})
    held_out = reversals(30, 3, seed=9)
    loop = trainer(params, reversals(400, 3, seed=1), tmp_path, dev=held_out)
    loop.development = replace(development(held_out), select_by="per")
    outcome = loop.run()
    assert outcome.evaluation.errors < 20
    assert Numbers.size == outcome.model.vocabulary_size
