"""Steps over text: corpora, test sets, subwords, alignments."""

from __future__ import annotations

from typing import Any

from creamtea.document.mistakes import KeyPath
from creamtea.study.plan.builder import Builder, Inputs, dump
from creamtea.study.spec import (
    FilesCorpus,
    FilesTestSet,
    Ibm3Corpus,
    Ibm3TestSet,
    SyntheticCorpus,
    SyntheticTestSet,
    TestSet,
)


class Texts:
    """The keys of text steps, each planned when it is first asked for."""

    def __init__(self, builder: Builder) -> None:
        self.builder, self.study, self.files = builder, builder.study, builder.files
        self._corpus: dict[str, str] = {}
        self._test_set: dict[tuple[str, int | None], str] = {}

    # ------------------------------------------------------------ what a variant stands on

    def root(self, variant: str) -> str:
        """The variant at the beginning of a chain of `start_from`: its subwords are those of all."""
        start = self.study.variants[variant].start_from
        return variant if start is None else self.root(start)

    def subwords_of(self, variant: str) -> str:
        root = self.study.variants[self.root(variant)]
        return self.subwords(root.corpus, root.subwords)

    def lexicon_of(self, variant: str) -> str:
        """One lexicon serves all the lexicon selections over a corpus and its subwords. An adapted variant's
        is in the subwords of the variant that it started from."""
        spec, root = self.study.variants[variant], self.study.variants[self.root(variant)]
        corpus = spec.alignment_corpus or spec.corpus
        own = corpus == root.corpus
        alignment = self.study.alignment
        params: dict[str, Any] = {"alignment": dump(alignment)}
        paths = [] if alignment.table is None else [alignment.table]
        if alignment.table is not None:
            self.files.aligned([(("alignment", "table"), alignment.table)])
            params["digests"] = self.files.digests(paths)
        return self.builder.add(
            f"align/{corpus}/{spec.subwords}" + ("" if own else f"@{root.corpus}"),
            params,
            {"corpus": [self.corpus(corpus)], "subwords": [self.subwords_of(variant)]},
            {"corpus": corpus, "subwords": spec.subwords},
            paths,
        )

    def subwords(self, corpus: str, name: str) -> str:
        return self.builder.add(
            f"subwords/{corpus}/{name}",
            {"subwords": dump(self.study.subwords[name])},
            {"corpus": [self.corpus(corpus)]},
            {"corpus": corpus, "subwords": name},
        )

    # ------------------------------------------------------------ corpora

    def corpus(self, name: str) -> str:
        if name not in self._corpus:
            self._corpus[name] = self._add_corpus(name)
        return self._corpus[name]

    def _add_corpus(self, name: str) -> str:
        corpus = self.study.corpora[name]
        params: dict[str, Any] = {"corpus": dump(corpus), "languages": self.builder.languages}
        inputs: Inputs = {}
        paths: list[str] = []
        if isinstance(corpus, FilesCorpus):
            at: KeyPath = ("corpora", name)
            pairs = [((*at, "train", index), pair) for index, pair in enumerate(corpus.train)]
            for key, pair in [*pairs, ((*at, "dev"), corpus.dev)]:
                self.files.aligned([((*key, "source"), pair.source), ((*key, "target"), pair.target)])
                paths += [pair.source, pair.target]
            # what is held out goes in by its files, so that a test set may stand on this corpus
            held_out = [self.study.test_sets[held] for held in corpus.filters.held_out]
            for held, test_set in zip(corpus.filters.held_out, held_out, strict=True):
                assert isinstance(test_set, FilesTestSet)  # creamtea.study.checks has seen to it
                self.files.aligned([(("test_sets", held, "source"), test_set.source)])
                paths.append(test_set.source)
            params["held_out"] = [
                test_set.model_dump(mode="json", include={"source", "tokenized"}) for test_set in held_out
            ]
        if isinstance(corpus, Ibm3Corpus):
            inputs = self._ibm3_inputs(corpus)
        params["digests"] = self.files.digests(paths)
        return self.builder.add(f"corpus/{name}", params, inputs, {"corpus": name}, paths)

    def _ibm3_inputs(self, corpus: Ibm3Corpus) -> Inputs:
        """The corpus of files, its subwords, and the tables counted in their alignment."""
        base, subwords = self.corpus(corpus.corpus), self.subwords(corpus.corpus, corpus.subwords)
        tables = self.builder.add(
            f"ibm3/{corpus.corpus}/{corpus.subwords}/{corpus.max_fertility}",
            {"max_fertility": corpus.max_fertility, "iterations": self.study.alignment.iterations},
            {"corpus": [base], "subwords": [subwords]},
            {"corpus": corpus.corpus, "subwords": corpus.subwords},
        )
        return {"corpus": [base], "subwords": [subwords], "ibm3": [tables]}

    # ------------------------------------------------------------ test sets

    def test_set(self, name: str, sentences: int | None = None) -> str:
        """The step that prepares a test set, or only its first `sentences`."""
        if (name, sentences) not in self._test_set:
            self._test_set[name, sentences] = self._add_test_set(name, sentences)
        return self._test_set[name, sentences]

    def _add_test_set(self, name: str, sentences: int | None) -> str:
        test_set = self.study.test_sets[name]
        paths: list[str] = []
        params: dict[str, Any] = {
            "test_set": dump(test_set if sentences is None else first_of(test_set, sentences)),
            "corpus": None,
            "languages": self.builder.languages,
        }
        inputs: Inputs = {}
        if isinstance(test_set, SyntheticTestSet):
            synthetic = self.study.corpora[test_set.corpus]
            assert isinstance(synthetic, SyntheticCorpus)  # creamtea.study.checks has seen to it
            params["corpus"] = dump(synthetic)
        if isinstance(test_set, Ibm3TestSet):
            ibm3 = self.study.corpora[test_set.corpus]
            assert isinstance(ibm3, Ibm3Corpus)
            params["corpus"] = dump(ibm3)
            inputs = {role: keys for role, keys in self._ibm3_inputs(ibm3).items() if role != "corpus"}
            self.files.aligned([(("test_sets", name, "source"), test_set.source)])
            paths = [test_set.source]
        if isinstance(test_set, FilesTestSet):
            named = [("source", test_set.source), ("target", test_set.target), ("idioms", test_set.idioms)]
            given = [(("test_sets", name, key), path) for key, path in named if path is not None]
            if test_set.itds is not None:
                given.append((("test_sets", name, "itds"), test_set.itds.info))
                inputs = {"corpus": [self.corpus(test_set.itds.corpus)]}
            self.files.aligned(given)
            paths = [path for _, path in given]
        params["digests"] = self.files.digests(paths)
        first = "" if sentences is None else f"@{sentences}"
        # a part of a test set has no `test_set` label: the report's tables are of whole ones
        labels = {"test_set": name} if sentences is None else {"first_of": name, "sentences": sentences}
        return self.builder.add(f"test_set/{name}{first}", params, inputs, labels, paths)


def first_of(test_set: TestSet, sentences: int) -> TestSet:
    if isinstance(test_set, SyntheticTestSet):
        return test_set.model_copy(update={"lines": min(sentences, test_set.lines)})
    limit = sentences if test_set.limit is None else min(sentences, test_set.limit)
    return test_set.model_copy(update={"limit": limit})
