"""Steps over text: corpora, test sets, subwords, alignments."""

from __future__ import annotations

from typing import cast

from creamtea.document.mistakes import KeyPath
from creamtea.methods.corpora import Corpus, FilesCorpus, WordCorpus
from creamtea.methods.planning import Planner, TextPlan
from creamtea.methods.test_sets import FilesTestSet, TestSet, WordTestSet
from creamtea.steps.systems import IMPORT_MODEL, ImportModelParams
from creamtea.steps.texts import (
    ALIGN,
    CORPUS,
    ENCODE,
    OVERLAP,
    SHORTLIST,
    SUBWORDS,
    TEST_SET,
    AlignParams,
    CorpusParams,
    EncodeParams,
    OverlapParams,
    ShortlistParams,
    SubwordsParams,
    TestSetParams,
)
from creamtea.study.data_files import DataFiles
from creamtea.study.plan.builder import Builder
from creamtea.study.spec import ImportedModel, Study
from creamtea.words import any_unspaced

# corpora, and the test sets whose segments may be in them
OVERLAPPING = ((FilesCorpus, FilesTestSet), (WordCorpus, WordTestSet))


class Texts(Builder):
    """The keys of text steps, each planned when it is first asked for."""

    def __init__(self, study: Study, files: DataFiles) -> None:
        super().__init__(study, files)
        self._corpus: dict[str, str] = {}
        self._test_set: dict[tuple[str, int | None], str] = {}

    # ------------------------------------------------------------ what a variant stands on

    def subwords_of(self, variant: str) -> str:
        root = self.study.root_of(variant)
        if (model := self.study.imported_by(variant)) is not None:
            return self.import_model(model, ("variants", root, "start_from", "marian"))
        return self.subwords(self.study.variants[root].corpus, self.study.variants[root].subwords)

    def import_model(self, model: ImportedModel, key: KeyPath) -> str:
        """`key`: where the study names it."""
        params = ImportModelParams(marian=model.marian, digest=self.files.marian(key, model.marian))
        return self.add(IMPORT_MODEL, model.marian, params, {}, {"model": model.marian}, [model.marian])

    def encode_for(self, variant: str, corpus: str) -> str:
        """A corpus in the subwords of a variant."""
        root = self.study.variants[self.study.root_of(variant)]
        if (model := self.study.imported_by(variant)) is None:
            return self.encode(corpus, root.subwords, root.corpus)
        return self.encode_in(model, corpus)

    def encode_in(self, model: ImportedModel, corpus: str) -> str:
        """A corpus in the subwords of a model from elsewhere, which has been looked at."""
        return self.add(
            ENCODE,
            f"{corpus}@{model.marian}",
            EncodeParams(),
            {"corpus": [self.corpus(corpus)], "subwords": [self.import_model(model, ())]},
            {"corpus": corpus, "subwords": model.marian},
        )

    def lexicon(self, variant: str, frequencies: bool = False) -> str:
        """One lexicon serves all the lexicon selections over a corpus and its subwords. An adapted variant's
        is in the subwords of the variant that it started from. `frequencies`: with the target subwords by
        frequency."""
        spec, root = self.study.variants[variant], self.study.variants[self.study.root_of(variant)]
        corpus = spec.alignment_corpus or spec.corpus
        if (model := self.study.imported_by(variant)) is not None:
            return self.lexicon_in(model, corpus, frequencies)
        encoded, subwords = self.encode(corpus, root.subwords, root.corpus), self.subwords_of(variant)
        place = _place(corpus, spec.subwords, root.corpus)
        labels = {"corpus": corpus, "subwords": spec.subwords}
        return self._align(place, encoded, subwords, labels, frequencies)

    def lexicon_in(self, model: ImportedModel, corpus: str, frequencies: bool) -> str:
        """The lexicon of a corpus in the subwords of a model from elsewhere."""
        subwords, labels = self.import_model(model, ()), {"corpus": corpus, "subwords": model.marian}
        encoded = self.encode_in(model, corpus)
        return self._align(f"{corpus}@{model.marian}", encoded, subwords, labels, frequencies)

    def _align(
        self, place: str, encoded: str, subwords: str, labels: dict[str, str], frequencies: bool
    ) -> str:
        alignment = self.study.alignment
        paths = [] if alignment.table is None else [alignment.table]
        if alignment.table is not None:
            self.files.aligned([(("alignment", "table"), alignment.table)])
        params = AlignParams(alignment=alignment, digests=self.files.digests(paths) if paths else None)
        inputs = {"encode": [encoded], "subwords": [subwords]}
        lexicon = self.add(ALIGN, place, params, inputs, labels, paths)
        if not frequencies:
            return lexicon
        return self.add(SHORTLIST, place, ShortlistParams(), {**inputs, "align": [lexicon]}, labels)

    def subwords(self, corpus: str, name: str) -> str:
        return self.add(
            SUBWORDS,
            f"{corpus}/{name}",
            SubwordsParams(subwords=self.study.subwords[name]),
            {"corpus": [self.corpus(corpus)]},
            {"corpus": corpus, "subwords": name},
        )

    def encode(self, corpus: str, subwords: str, trained_on: str | None = None) -> str:
        """A corpus in subwords of its own, or in those of another one."""
        base = trained_on or corpus
        return self.add(
            ENCODE,
            _place(corpus, subwords, base),
            EncodeParams(),
            {"corpus": [self.corpus(corpus)], "subwords": [self.subwords(base, subwords)]},
            {"corpus": corpus, "subwords": subwords},
        )

    # ------------------------------------------------------------ corpora and test sets

    def corpus(self, name: str) -> str:
        if name not in self._corpus:
            self._corpus[name] = self._add_corpus(name)
        return self._corpus[name]

    def _add_corpus(self, name: str) -> str:
        corpus, languages = self.study.corpora[name], self.study.languages
        plan, paths = self._text_plan("corpora", name, corpus)
        params = CorpusParams(
            corpus=corpus,
            languages=languages,
            digests=self.files.digests(paths),
            held_out=plan.held_out,
            unspaced=isinstance(corpus, FilesCorpus) and any_unspaced(languages.source, languages.target),
        )
        return self.add(CORPUS, name, params, plan.inputs, {"corpus": name}, paths)

    def test_set(self, name: str, sentences: int | None = None) -> str:
        """The step that prepares a test set, or only its first `sentences`."""
        if (name, sentences) not in self._test_set:
            self._test_set[name, sentences] = self._add_test_set(name, sentences)
        return self._test_set[name, sentences]

    def _add_test_set(self, name: str, sentences: int | None) -> str:
        test_set = self.study.test_sets[name]
        plan, paths = self._text_plan("test_sets", name, test_set)
        params = TestSetParams(
            test_set=test_set if sentences is None else test_set.first(sentences),
            corpus=plan.corpus,
            languages=self.study.languages,
            digests=self.files.digests(paths),
        )
        # a part of a test set has no `test_set` label: the report's tables are of whole ones
        labels = {"test_set": name} if sentences is None else {"first_of": name, "sentences": sentences}
        place = name if sentences is None else f"{name}@{sentences}"
        return self.add(TEST_SET, place, params, plan.inputs, labels, paths)

    def overlaps(self) -> None:
        """Of each training text of files with all test sets of files of its kind, in one reading of it.
        Sentences that are sampled or made up may well come twice."""
        trained_on = dict.fromkeys(variant.corpus for variant in self.study.variants.values())
        for name in trained_on:
            corpus = self.study.corpora[name]
            kinds = [tests for texts, tests in OVERLAPPING if isinstance(corpus, texts)]
            test_sets = [
                test_set for test_set, spec in self.study.test_sets.items() if isinstance(spec, tuple(kinds))
            ]
            if test_sets:
                inputs = {
                    "corpus": [self.corpus(name)],
                    "test_sets": [self.test_set(test_set) for test_set in test_sets],
                }
                params = OverlapParams(symbols=isinstance(corpus, WordCorpus))
                self.add(OVERLAP, name, params, inputs, {"corpus": name, "test_sets": test_sets})

    def _text_plan(self, section: str, name: str, text: Corpus | TestSet) -> tuple[TextPlan, list[str]]:
        """What the text's step needs, and the paths of the user's files, each of which has been looked at."""
        plan = text.plan((section, name), cast(Planner, self))  # which a StudyPlanner is
        for group in plan.aligned:
            self.files.aligned(group)
        for checked in plan.checked:
            self.files.readable(checked)
        return plan, [path for group in plan.aligned for _, path in group]


def _place(corpus: str, subwords: str, trained_on: str) -> str:
    return f"{corpus}/{subwords}" + ("" if corpus == trained_on else f"@{trained_on}")
