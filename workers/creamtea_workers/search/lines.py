"""Lines of text translated by a trained system, outside of a test set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from creamtea.contract.step import StepContext
from creamtea.errors import InputError
from creamtea.steps.systems import DecodeParams
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import normalise
from creamtea_workers.corpora.vocabularies import load_text_model
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.systems import TrainedModel, lexicon_file
from creamtea_workers.search.translator import naming_segments

TranslateLines = Callable[[Sequence[str]], list[dict[str, Any]]]


def open_system(context: StepContext[DecodeParams], with_selection: bool) -> TranslateLines:
    """A function from lines to {source, text, score, length, selected_size}, and where it is asked for
    `selected`, the subwords that the sentence may use; None for the full vocabulary. The outputs are those of
    a decode step with the same params. InputError for a selection of a model without joint subwords.
    """
    prepare_torch(context.cpus)
    params = context.params
    subwords = load_text_model(context)
    trained = TrainedModel.of_step(context, params.precision)
    translator = trained.translator(params.selection, params.search, lexicon_file(context), subwords)
    if with_selection and not isinstance(subwords, SubwordModel):
        raise InputError("what a selection allows is shown of subwords of kind bpe or unigram only")

    def translate(lines: Sequence[str]) -> list[dict[str, Any]]:
        lines = [normalise(line) for line in lines]
        sources = subwords.encode_lines(lines)
        with naming_segments(sources, range(len(lines))):
            translations = translator.translate(sources)
        rows = []
        for line, translation in zip(lines, translations, strict=True):
            hypothesis = translation.hypothesis
            rows.append(
                {
                    "source": line,
                    "text": subwords.decode(hypothesis.tokens),
                    "score": hypothesis.score,
                    "length": len(hypothesis.tokens),
                    "selected_size": translation.selected_size,
                }
            )
        if with_selection and isinstance(subwords, SubwordModel):
            selection = translator.selected(sources)
            for number, row in enumerate(rows):
                ids = None if selection is None else selection[number]
                row["selected"] = None if ids is None else subwords.pieces(ids)
        return rows

    return translate
