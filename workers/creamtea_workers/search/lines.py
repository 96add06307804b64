"""Lines of text translated by a trained system, outside of a test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from creamtea.contract.step import StepContext
from creamtea.errors import InputError
from creamtea.steps.systems import DecodeParams
from creamtea_workers.corpora.segments import encode_sources
from creamtea_workers.corpora.subwords import UNK, SubwordModel
from creamtea_workers.corpora.text import normalise, read_jsonl
from creamtea_workers.corpora.vocabularies import TextModel, load_text_model
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.hypothesis import Hypothesis
from creamtea_workers.search.systems import TrainedModel, lexicon_file
from creamtea_workers.search.translator import Translation, Translator

UNKNOWN = "this selection does not say what would allow it"


@dataclass(frozen=True)
class OpenSystem:
    """A system in memory, once its step's files have been read. Its outputs are those of a decode step with
    the same params."""

    params: DecodeParams
    subwords: TextModel
    translator: Translator
    example: str = ""  # a source with its language and tags, of a system of words that has such symbols

    @classmethod
    def of_step(cls, context: StepContext[DecodeParams]) -> OpenSystem:
        prepare_torch(context.cpus)
        params = context.params
        subwords = load_text_model(context)
        trained = TrainedModel.of_step(context, params.precision)
        translator = trained.translator(params.selection, params.search, lexicon_file(context), subwords)
        own = subwords.source_vocabulary
        marked = own is not None and own.bracketed > 0
        example = read_jsonl(context.input("test_set") / "segments.jsonl")[0]["source"] if marked else ""
        return cls(params, subwords, translator, example)

    def translate(
        self, lines: Sequence[str], with_selection: bool = False, count: int = 1, word: str = ""
    ) -> list[dict[str, Any]]:
        """For each line {source, text, score, length, selected_size, unknown}, the last what of the source
        the model has never seen; `with_selection` adds `selected`, the subwords that the sentence may use
        (None: the full vocabulary), and a `count` above 1 `best`, at most so many of
        {text, score, length}, best first. A `word` of the target adds `word`: for each of its subwords
        {subword, allowed, needs}, the last what would allow it, in words, and "" if it is allowed.
        InputError for a selection of a model without joint subwords.
        """
        joint = self.subwords if isinstance(self.subwords, SubwordModel) else None
        if (with_selection or word) and joint is None:
            raise InputError("what a selection allows is shown of subwords of kind bpe or unigram only")
        lines = [normalise(line) for line in lines]
        sources = encode_sources(self.subwords, lines)
        translations: dict[int, list[Translation]] = {}
        for batch in self.translator.batches(sources, self.params.batch_size):
            several = self.translator.translate_best([sources[n] for n in batch], count)
            translations.update(zip(batch, several, strict=True))
        rows: list[dict[str, Any]] = []
        for number, line in enumerate(lines):
            found = translations[number]
            best = [_translation(translation.hypothesis, self.subwords) for translation in found]
            unknown = self.subwords.unknown(line) if UNK in sources[number] else []
            row = {
                "source": line,
                **best[0],
                "selected_size": found[0].selected_size,
                "unknown": unknown,
            }
            rows.append(row if count == 1 else {**row, "best": best})
        if joint is not None and (with_selection or word):
            selection = self.translator.selected(sources)
            for number, row in enumerate(rows):
                ids = None if selection is None else selection[number]
                if with_selection:
                    row["selected"] = None if ids is None else joint.pieces(ids)
                if word:
                    allowed = None if ids is None else frozenset(ids)
                    row["word"] = _subwords_of(
                        word, sources[number], allowed, self.translator, joint, self.params
                    )
        return rows


def _subwords_of(
    word: str,
    source: Sequence[int],
    allowed: frozenset[int] | None,
    translator: Translator,
    subwords: SubwordModel,
    params: DecodeParams,
) -> list[dict[str, Any]]:
    """`allowed` None: every subword."""
    ids = subwords.encode(word)
    needs = dict.fromkeys(ids, "")
    if missing := [id_ for id_ in needs if allowed is not None and id_ not in allowed]:
        limits = translator.limits(source, missing)
        for place, id_ in enumerate(missing):
            needs[id_] = UNKNOWN if limits is None else params.selection.allowing(limits[place])
    return [
        {"subword": piece, "allowed": not needs[id_], "needs": needs[id_]}
        for id_, piece in zip(ids, subwords.pieces(ids), strict=True)
    ]


def _translation(hypothesis: Hypothesis, subwords: TextModel) -> dict[str, Any]:
    return {
        "text": subwords.decode(hypothesis.tokens),
        "score": hypothesis.score,
        "length": len(hypothesis.tokens),
    }
