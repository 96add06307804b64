"""Step `train` from files to files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from small_trainings import Numbers, raw_parameters
from step_context import Context, FolderCheckpoints

from creamtea.errors import StepError
from creamtea.methods.texts import Subwords
from creamtea.steps.systems import TRAIN
from creamtea.steps.texts import ENCODE
from creamtea_workers.corpora.batches import Pairs
from creamtea_workers.corpora.subwords import train_subwords
from creamtea_workers.corpora.text import write_lines
from creamtea_workers.models.build import load_model
from creamtea_workers.training import evaluate
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


@pytest.mark.slow
def test_the_same_parameters_give_the_same_model(folder: Path) -> None:
    models = []
    for name in ("first", "second"):
        given = context(folder, raw_parameters(TRAINING), name)
        given.run()
        models.append(load_model(given.output)[0].state_dict())
    assert all(torch.equal(value, models[1][name]) for name, value in models[0].items())


def test_a_corpus_of_too_long_pairs_is_refused(folder: Path) -> None:
    given = context(folder, raw_parameters({**TRAINING, "max_tokens": 1, "batch_tokens": 1}))
    with pytest.raises(StepError, match=r"every training pair is longer than 0 subwords: raise training"):
        given.run()
