"""Step `train` from files to files."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_trainings import Killed, Numbers, raw_parameters
from step_context import Context, FolderCheckpoints

from creamtea.errors import StepError
from creamtea.methods.texts import Subwords
from creamtea.methods.training import Training
from creamtea.steps.systems import TRAIN, TrainParams
from creamtea.steps.texts import ENCODE
from creamtea_workers.corpora.batches import Pairs
from creamtea_workers.corpora.subwords import EOS, SUBWORDS_FILE, UNK, SubwordModel, train_subwords
from creamtea_workers.corpora.text import write_lines
from creamtea_workers.corpora.tokens import RowWriter
from creamtea_workers.models.model import load_model
from creamtea_workers.steps.train import sampled_pairs, training_pairs
from creamtea_workers.training import evaluate, trainer
from creamtea_workers.training.evaluate import Development

TRAINING = {"batch_tokens": 100, "max_epochs": 2, "max_tokens": 39, "warmup": 5}


def context(folder: Path, params: dict[str, Any], attempt: str = "") -> Context:
    folders = {role: [folder / role] for role in ("corpus", "subwords", "encode")}
    checkpoints = FolderCheckpoints(folder / f"checkpoints{attempt}")
    return Context(TRAIN, params, folders, folder / f"output{attempt}", checkpoints)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus, subwords = tmp_path / "corpus", tmp_path / "subwords"
    corpus.mkdir()
    subwords.mkdir()
    words = ["tea", "milk", "jam", "scone", "cream", "butter", "cup", "pot"]
    source = [" ".join(words[(n + k) % 8] for k in range(n % 5 + 1)) for n in range(60)] + ["jam " * 40]
    for name, lines in (("train", source), ("dev", source[:10])):
        write_lines(corpus / f"{name}.src", lines)
        write_lines(corpus / f"{name}.tgt", [line.upper() for line in lines])
    spec = Subwords(kind="bpe", vocabulary=60)
    train_subwords([corpus / "train.src", corpus / "train.tgt"], spec, subwords / "subwords.model")
    folders = {"corpus": [corpus], "subwords": [subwords]}
    Context(ENCODE, {}, folders, tmp_path / "encode").run()
    return tmp_path


def test_development_bleu_splits_text_without_blanks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """13a makes one word of a sentence, so that no translation would be better than another."""
    text = ["猫が魚を食べた。", "犬は走った。", "彼女は本を読んでいる。"]
    monkeypatch.setattr(evaluate, "greedy_translations", lambda *_: text)
    model, objective, _ = load_model(trained(folder))
    pairs = Pairs.load(folder / "encode", "dev")

    def bleu(**tokenize: str) -> float:
        development = Development(pairs, text, Numbers(), **tokenize)
        return evaluate.evaluate(model, objective, development, torch.device("cpu")).bleu

    assert bleu() == 0.0
    assert bleu(tokenize="char") == pytest.approx(100.0)


def trained(folder: Path) -> Path:
    given = context(folder, raw_parameters({**TRAINING, "max_epochs": 1}, tokenize="char"))
    result = given.run()
    (detail,) = [row.detail for row in result.metrics if row.name == "dev_bleu"]
    assert detail["tokenize"] == "char"
    return given.output


def test_writes_a_model_that_loads_and_tells_how_it_went(folder: Path) -> None:
    given = context(folder, raw_parameters(TRAINING, nvs={"positive_weight": 100.0}))
    result = given.run()
    assert sorted(path.name for path in given.output.iterdir()) == ["model.json", "model.safetensors"]
    model, _, config = load_model(given.output)
    assert config.vocabulary_size == model.vocabulary_size == 60
    values = {row.name: row.value for row in result.metrics}
    assert set(values) == {
        "dev_loss", "dev_bleu", "updates", "tokens_per_second", "parameters", "left_out",
    }  # fmt: skip
    (bleu,) = [row.detail for row in result.metrics if row.name == "dev_bleu"]
    assert bleu["sentences"] == len((folder / "corpus" / "dev.tgt").read_text().splitlines())
    assert values["left_out"] == 1
    assert values["parameters"] == sum(weight.numel() for weight in model.parameters())
    assert {point.series for point in result.points} >= {"train_loss", "dev_loss", "dev_bleu"}
    assert result.facts["stopped"] == "max_epochs"
    told = r"updates, epoch 2, loss [\d.]+ per token, learning rate [\de.-]+, dev BLEU [\d.]+, "
    told += r"dev perplexity [\d.e+]+, [\d,]+ tokens/s"
    assert any(re.fullmatch(told, message) for _, _, message in given.progresses)


@pytest.mark.parametrize(
    ("limits", "named"),
    [({"max_tokens": 2}, "max_tokens"), ({"max_tokens": 3, "batch_tokens": 3}, "batch_tokens")],
)
def test_a_corpus_of_too_long_pairs_is_refused(tmp_path: Path, limits: dict[str, int], named: str) -> None:
    """</s> takes one of a batch's tokens."""
    for side in ("src", "tgt"):
        writer = RowWriter(tmp_path, f"train.{side}", 9)
        writer.write([[4, 5, 6]] * 2)
        writer.close()
    with pytest.raises(StepError, match=rf"longer than 2 subwords: raise training\.{named}"):
        training_pairs(tmp_path, Training(**limits))


DROPOUTS = {"bpe_dropout": 0.3, "word_dropout": 0.2}


@pytest.mark.slow
def test_a_training_with_dropout_of_merges_and_words_resumes_with_the_same_bits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "REPORT_EVERY", 1)
    params = raw_parameters({**TRAINING, **DROPOUTS, "checkpoint_every": 3})
    whole = context(folder, params, "whole")
    updates = {row.name: row.value for row in whole.run().metrics}["updates"]
    for stop in (2, updates - 1):
        given = context(folder, params, "pieces")

        def dies(done: float, total: float, message: str = "", stop: float = stop) -> None:
            if done >= stop:
                raise Killed

        monkeypatch.setattr(given, "progress", dies)
        with pytest.raises(Killed):
            given.run()
    pieces = context(folder, params, "pieces")
    pieces.run()
    models = [load_model(given.output)[0].state_dict() for given in (whole, pieces)]
    assert all(torch.equal(value, models[1][name]) for name, value in models[0].items())
    plain = context(folder, raw_parameters(TRAINING), "plain")
    plain.run()
    assert not torch.equal(
        models[0]["embedding.weight"], load_model(plain.output)[0].state_dict()["embedding.weight"]
    )


def test_each_epoch_is_segmented_anew_as_a_function_of_seed_and_epoch(folder: Path) -> None:
    subwords, plain = (
        SubwordModel.load(folder / "subwords" / SUBWORDS_FILE),
        Pairs.load(folder / "encode", "train", 39),
    )
    params = TrainParams.model_validate(raw_parameters({**TRAINING, **DROPOUTS}))

    def rows(epoch: int) -> list[list[int]]:
        pairs = sampled_pairs(folder / "corpus", plain, subwords, params, epoch)
        assert len(pairs) == len(plain)
        return [row.tolist() for side in (pairs.sources, pairs.targets) for row in side]

    kept = [row.tolist() for side in (plain.sources, plain.targets) for row in side]
    assert rows(0) == rows(0)
    assert kept != rows(0) != rows(1)
    assert [subwords.decode(row) for row in rows(1)] == [subwords.decode(row) for row in kept]
    longest = [max(len(row) for row in side) for side in (plain.sources, plain.targets)]
    assert max(map(len, rows(1))) <= max(longest)


def test_dropped_words_are_read_as_unknown_and_still_predicted() -> None:
    pairs = Pairs([[4, 5, 6] * 50, [7]], [[8, 9] * 50, [4] * 100])
    batch = pairs.batch(np.array([0, 1]))
    dropped = batch.without_words(0.3, seed=5)
    assert torch.equal(dropped.target, batch.target)
    for before, after in ((batch.source, dropped.source), (batch.target_in, dropped.target_in)):
        changed = before != after
        assert (after[changed] == UNK).all()
        assert (before[changed] > EOS).all()
        share = changed.sum() / (before > EOS).sum()
        assert 0.2 < share < 0.4
    assert torch.equal(batch.without_words(0.3, seed=5).source, dropped.source)
    assert not torch.equal(batch.without_words(0.3, seed=6).source, dropped.source)
