"""A Transformer of ours inside CTranslate2: the same weights, so that both do the same work."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ctranslate2

from creamtea_workers.export import save_ctranslate2
from creamtea_workers.models.transformer import Transformer

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
QUANTIZATIONS = {"fp32": None, "int8": "int8"}
COMPUTE_TYPES = {"fp32": "float32", "int8": "int8_float32"}


@dataclass(frozen=True)
class Peer:
    """CTranslate2 with one beam width; hypotheses have a forced length."""

    translator: ctranslate2.Translator
    names: Sequence[str]  # of the subwords
    beam: int

    @classmethod
    def of(cls, model: Transformer, precision: str, beam: int, threads: int) -> Peer:
        """`precision`: fp32 or int8."""
        names = [*SPECIAL, *(f"w{id_}" for id_ in range(len(SPECIAL), model.vocabulary_size))]
        with tempfile.TemporaryDirectory() as folder:
            save_ctranslate2(model, (names, names), Path(folder), QUANTIZATIONS[precision])
            opened = ctranslate2.Translator(
                folder, compute_type=COMPUTE_TYPES[precision], inter_threads=1, intra_threads=threads
            )
        return cls(opened, names, beam)

    def translate(self, source: Sequence[int], length: int) -> list[int]:
        """`source` without </s>; exactly `length` subwords come back, </s> not among them."""
        (result,) = self.translator.translate_batch(
            [[self.names[id_] for id_ in source]],
            beam_size=self.beam,
            min_decoding_length=length,
            max_decoding_length=length,
            return_scores=False,
        )
        return [SPECIAL.index(name) if name in SPECIAL else int(name[1:]) for name in result.hypotheses[0]]
