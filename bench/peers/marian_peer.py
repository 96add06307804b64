"""Hugging Face's MarianMT in the shape of a Transformer of ours, with random weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch

from creamtea_workers.models.interface import BOS, EOS, PAD
from creamtea_workers.models.transformer import DecoderLayer, Transformer
from creamtea_workers.search.translator import source_batch

if TYPE_CHECKING:
    from transformers import MarianMTModel


def marian(model: Transformer, dropout: float = 0.0) -> MarianMTModel:
    """ImportError without transformers, which creamtea does not install."""
    from transformers import MarianConfig, MarianMTModel

    width = model.output_weight.shape[1]
    inner = cast(DecoderLayer, model.decoder[0]).feed.inner.out_features
    config = MarianConfig(
        vocab_size=model.vocabulary_size,
        d_model=width,
        encoder_layers=len(model.encoder),
        decoder_layers=len(model.decoder),
        encoder_attention_heads=model.heads,
        decoder_attention_heads=model.heads,
        encoder_ffn_dim=inner,
        decoder_ffn_dim=inner,
        activation_function="relu",
        dropout=dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        max_position_embeddings=512,
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    torch.manual_seed(1)
    return MarianMTModel(config)


@dataclass(frozen=True)
class Peer:
    """Its `generate`; a batch has as many steps as ours, those of its longest hypothesis."""

    model: MarianMTModel
    beam: int

    @torch.inference_mode()
    def translate(self, sources: Sequence[Sequence[int]], length: int) -> list[list[int]]:
        """`sources` without </s>; exactly `length` subwords come back for each."""
        ids = source_batch(sources, self.model.device)
        found = self.model.generate(
            input_ids=ids,
            attention_mask=(ids != PAD).long(),
            num_beams=self.beam,
            do_sample=False,
            min_new_tokens=length,
            max_new_tokens=length,
        )
        return [row[-length:] for row in found.tolist()]
