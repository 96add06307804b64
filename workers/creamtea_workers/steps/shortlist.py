"""Step `shortlist`: the lexicon and, as in Marian's shortlists, the most frequent target subwords."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.steps.texts import ShortlistParams
from creamtea_workers.corpora.subwords import load_text_model
from creamtea_workers.corpora.tokens import Rows
from creamtea_workers.models.interface import BOS, EOS, PAD, UNK
from creamtea_workers.objectives.base import unigram_frequencies
from creamtea_workers.selection.aligner import Lexicon


def run(context: StepContext[ShortlistParams]) -> StepResult:
    """Sort the subwords of the training targets by frequency. Equally frequent ones are in order of id."""
    context.progress(0, 1, "counting subwords")
    targets = Rows.load(context.input("encode"), "train", "tgt")
    frequencies = unigram_frequencies(targets, load_text_model(context).size).numpy()
    frequencies[[PAD, BOS, EOS, UNK]] = 0.0
    order = np.argsort(-frequencies, kind="stable")
    frequent = order[frequencies[order] > 0].astype(np.int32)
    lexicon = Lexicon.load(context.input("align") / "lexicon.npz")
    replace(lexicon, frequent=frequent).save(context.output / "lexicon.npz")
    return StepResult(metrics=[MetricRow("frequent", len(frequent))])
