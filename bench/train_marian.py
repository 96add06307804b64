"""Train a small MarianMT model with transformers, for studies of models that were trained elsewhere.

    OMP_NUM_THREADS=1 .venv-comet/bin/python bench/train_marian.py DIR FOLDER --seconds 1200

DIR holds train.en, train.de, val.en and val.de, FOLDER becomes a folder in MarianMT format. The schedule is
one of time, so that a slower machine trains for fewer updates. Needs transformers and sentencepiece.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from pathlib import Path

import numpy as np
import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

PIECES, LONGEST, BATCH = 2000, 100, 800  # per side; subwords per sentence; target subwords per batch
PEAK, WARMUP, DECAY = 0.003, 400, 0.3  # learning rate; updates; share of the time after which it falls to 0
SMOOTHING = 0.1


def make_tokenizer(data: Path, folder: Path, pieces: int) -> MarianTokenizer:
    """A SentencePiece model of each side, and one vocabulary over both."""
    known: dict[str, None] = {}
    for side, ending in (("source", "en"), ("target", "de")):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            input=str(data / f"train.{ending}"), model_writer=model, vocab_size=pieces, model_type="unigram",
            bos_id=-1, character_coverage=1.0, minloglevel=2, num_threads=1,
        )  # fmt: skip
        (folder / f"{side}.spm").write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        known |= dict.fromkeys(processor.id_to_piece(id_) for id_ in range(processor.get_piece_size()))
    names = ["</s>", "<unk>", *(piece for piece in known if piece not in ("</s>", "<unk>")), "<pad>"]
    vocabulary = {piece: id_ for id_, piece in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    return MarianTokenizer.from_pretrained(folder, source_lang="en", target_lang="de")


def make_model(tokenizer: MarianTokenizer, layers: tuple[int, int], width: int) -> MarianMTModel:
    pad = tokenizer.pad_token_id
    config = MarianConfig(
        vocab_size=len(tokenizer.encoder), d_model=width, encoder_layers=layers[0], decoder_layers=layers[1],
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width, activation_function="swish", scale_embedding=True, dropout=0.1,
        pad_token_id=pad, eos_token_id=tokenizer.eos_token_id, decoder_start_token_id=pad,
        forced_eos_token_id=tokenizer.eos_token_id, init_std=width**-0.5, max_length=LONGEST,
    )  # fmt: skip
    return MarianMTModel(config)


def batches(pairs: list[tuple[list[int], list[int]]], random: np.random.Generator) -> list[list[int]]:
    """Pairs of similar length, in random order."""
    order = sorted(random.permutation(len(pairs)), key=lambda n: (len(pairs[n][1]), len(pairs[n][0])))
    found: list[list[int]] = [[]]
    for n in order:
        if found[-1] and (len(found[-1]) + 1) * len(pairs[n][1]) > BATCH:
            found.append([])
        found[-1].append(n)
    return [found[n] for n in random.permutation(len(found))]


def padded(rows: list[list[int]], pad: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [pad] * (longest - len(row)) for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=1380)
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    options.folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(options.data, options.folder, PIECES)
    model = make_model(tokenizer, (2, 1), 128)
    lines = [(options.data / f"train.{side}").read_text("utf-8").split("\n")[:-1] for side in ("en", "de")]
    encoded = tokenizer(lines[0]).input_ids, tokenizer(text_target=lines[1]).input_ids
    pairs = [pair for pair in zip(*encoded, strict=True) if max(map(len, pair)) <= LONGEST]
    optimiser = torch.optim.Adam(model.parameters(), lr=PEAK, betas=(0.9, 0.98))
    random, pad, start, update, tokens = np.random.default_rng(1), tokenizer.pad_token_id, time.time(), 0, 0
    while (share := (time.time() - start) / options.seconds) < 1:
        for batch in batches(pairs, random):
            if (share := (time.time() - start) / options.seconds) >= 1:
                break
            optimiser.param_groups[0]["lr"] = (
                PEAK * min(1.0, (update + 1) / WARMUP) * min(1.0, (1 - share) / (1 - DECAY))
            )
            source = padded([pairs[n][0] for n in batch], pad)
            target = padded([pairs[n][1] for n in batch], pad)
            begin = torch.full((len(batch), 1), pad)
            with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
                logits = model(
                    input_ids=source, attention_mask=(source != pad).long(),
                    decoder_input_ids=torch.cat([begin, target[:, :-1]], dim=1),
                ).logits  # fmt: skip
            loss = torch.nn.functional.cross_entropy(
                logits.float().flatten(0, 1), target.flatten(), ignore_index=pad, label_smoothing=SMOOTHING
            )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            update, tokens = update + 1, tokens + int((target != pad).sum())
            if update % 50 == 0:
                speed = tokens / (time.time() - start)
                print(f"{update} updates, loss {loss:.3f}, {speed:.0f} target subwords/s", flush=True)
    print(f"{update} updates of {tokens} target subwords", flush=True)
    model.save_pretrained(options.folder, safe_serialization=True)


if __name__ == "__main__":
    main()
