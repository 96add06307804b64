"""Builds a tiny, untrained COMET checkpoint offline. Run with the python of COMET's environment:

    python tiny_comet.py FOLDER SAMPLES

writes FOLDER/encoder (a 500-piece XLM-R tokenizer, 2 layers, 32 wide), FOLDER/model/hparams.yaml and
FOLDER/model/checkpoints/model.ckpt, by COMET's own classes; `load_from_checkpoint` reads it as a real one.
FOLDER/direct.json has the scores that `predict` gives for SAMPLES, a JSON list of [src, mt, ref].
"""

import atexit
import gc
import json
import random
import sys
from pathlib import Path

import pytorch_lightning as lightning
import sentencepiece
import torch
import yaml
from comet import load_from_checkpoint
from comet.models import RegressionMetric
from transformers import XLMRobertaConfig, XLMRobertaModel, XLMRobertaTokenizer

ALPHABET = "abcdefghijklmnopqrstuvwxyzäöüß"


def build_encoder(folder: Path) -> None:
    folder.mkdir(parents=True)
    drawn = random.Random(1)
    words = ["".join(drawn.choices(ALPHABET, k=drawn.randint(2, 9))) for _ in range(800)]
    lines = [" ".join(drawn.choices(words, k=12)) for _ in range(800)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(folder / "sentencepiece.bpe"), vocab_size=500
    )
    tokenizer = XLMRobertaTokenizer(str(folder / "sentencepiece.bpe.model"))
    tokenizer.save_pretrained(folder)
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=514,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    XLMRobertaModel(config).save_pretrained(folder)


def build_model(encoder: Path, folder: Path) -> None:
    model = RegressionMetric(
        encoder_model="XLM-RoBERTa",
        pretrained_model=str(encoder),
        hidden_sizes=[16],
        train_data=[],
        validation_data=[],
        local_files_only=True,
    )
    (folder / "checkpoints").mkdir(parents=True)
    trainer = lightning.Trainer(logger=False, enable_checkpointing=False, accelerator="cpu")
    trainer.strategy.connect(model)
    trainer.save_checkpoint(folder / "checkpoints" / "model.ckpt", weights_only=True)
    (folder / "hparams.yaml").write_text(yaml.safe_dump({"class_identifier": "regression_metric"}))


def predict(checkpoint: Path, rows: list[list[str]]) -> list[float]:
    model = load_from_checkpoint(str(checkpoint))
    samples = [dict(zip(("src", "mt", "ref"), row, strict=True)) for row in rows]
    output = model.predict(samples, batch_size=16, gpus=0, num_workers=0, progress_bar=False)
    return [float(value) for value in output.scores]


if __name__ == "__main__":
    atexit.register(gc.freeze)  # Python would search all that is imported for garbage
    torch.manual_seed(1)
    torch.set_num_threads(1)
    target = Path(sys.argv[1])
    build_encoder(target / "encoder")
    build_model(target / "encoder", target / "model")
    scores = predict(target / "model" / "checkpoints" / "model.ckpt", json.loads(sys.argv[2]))
    (target / "direct.json").write_text(json.dumps(scores))
