"""Test sets: sentences to translate, with references and annotated idioms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, kind_of
from creamtea.document.values import MadeUp, Name, Positive, Seed, Share, Strict, unstated
from creamtea.methods import corpora
from creamtea.methods.family import Family, Method
from creamtea.methods.planning import CheckedFile, File, Planner, TextPlan
from creamtea.methods.texts import INFLECTIONS, NOTES, PRONUNCIATIONS, Tokenized, WordLines, read_notes


class TestSet(Method):
    """Sentences to translate. `metrics` are counts that only this kind's step reports."""

    __test__ = False  # tells pytest that this is not a class of tests

    def first(self, sentences: int) -> TestSet:
        """Return a test set of only its first sentences."""
        raise NotImplementedError(f"{type(self).__name__} cannot be cut to its first sentences")

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        """Return the inputs and files of its step; `place` is the position of the test set in the study."""
        return TextPlan()

    def describe(self) -> str:
        return self.title

    @property
    def has_references(self) -> bool:
        return True


class OfFile(TestSet):
    """Sentences of a file; `limit` takes only the first."""

    source: str  # path of the source text
    tokenized: Tokenized = "no"  # moses: the files hold Moses' tokens and escapes, which are undone
    limit: Positive | None = None  # [segments] only the first

    def first(self, sentences: int) -> TestSet:
        limit = sentences if self.limit is None else min(sentences, self.limit)
        return self.model_copy(update={"limit": limit})


class ItdsIdioms(Strict):
    """Idioms of an `.info` file of IdiomTranslationDS (Fadaee, Bisazza and Monz 2018).

    Their words are found in the source by lemma, their translations in the reference by a word alignment
    trained on `corpus` and the test set together. Idiom recall uses the words of the file's `metadata`, the
    idiom and its dictionary translation (NVS paper, section 2.3), or the words found in the `text`.
    """

    info: str  # path of IdiomTranslationDS' `.info` file, line-aligned with the test set
    corpus: Name  # a corpus of files, for the word alignment
    # words that idiom recall uses: the idiom and its dictionary translation, or the words found in the text
    words: Literal["metadata", "text"] = "metadata"


class FilesTestSet(OfFile):
    """Segments of line-aligned text files.

    `more_references` are aligned like `target`, for metrics that can use them; an empty line means that the
    segment has none. Without `target` there are no references: outputs can still be compared by metrics
    without references, by people, and with each other.

    `idioms` is a line-aligned JSON Lines file: a list of {name, source: [from, to], target: [from, to]} per
    line, with character offsets into the source and the reference. `target` may instead be a text: a
    translation of the idiom that need not be in the reference.
    """

    kind: Literal["files"]
    # path of the reference; none: a test set without references
    target: str | None = unstated(None)
    # paths of further references, for metrics that can use them
    more_references: list[str] = unstated([])
    idioms: str | None = None  # path of a JSON Lines file with the annotated idioms of each segment
    itds: ItdsIdioms | None = None  # idioms of IdiomTranslationDS instead of `idioms`
    title: ClassVar[str] = "text files"
    worker: ClassVar[str] = "creamtea_workers.corpora.test_files"
    metrics: ClassVar[dict[str, str]] = {
        "found": "segments whose idiom is found in the source (with `itds`)",
        "aligned": "segments whose idiom has a translation by alignment (with `itds`)",
    }

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        named = [("source", self.source), ("target", self.target), ("idioms", self.idioms)]
        files: list[File] = [((*place, key), path) for key, path in named if path is not None]
        files += [
            ((*place, "more_references", position), path)
            for position, path in enumerate(self.more_references)
        ]
        if self.itds is None:
            notes = [file for file in files if file[0] == (*place, "idioms")]
            checked = [CheckedFile(file, self.limit, read_notes, NOTES) for file in notes]
            return TextPlan(aligned=[files], checked=checked)
        files.append(((*place, "itds"), self.itds.info))
        return TextPlan(inputs={"corpus": [planner.corpus(self.itds.corpus)]}, aligned=[files])

    @property
    def has_references(self) -> bool:
        return self.target is not None

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        if is_without_references(block):
            for key in ("more_references", "idioms", "itds"):
                if block.get(key):
                    found = f"{key} of a test set without references"
                    yield Mistake((*path, key), found, "`target`, the path of a reference, beside it")
        itds = block.get("itds")
        if isinstance(itds, dict):
            yield from corpora.needs_corpus(
                (*path, "itds", "corpus"), itds.get("corpus"), study, corpora.FilesCorpus
            )
            if block.get("idioms") is not None:
                yield Mistake((*path, "idioms"), "idioms beside itds", "one of the two")


def is_without_references(test_set: Block) -> bool:
    """Return True if a raw test set of files names no reference."""
    return kind_of(test_set) == "files" and test_set.get("target") is None


class MadeUpTestSet(TestSet):
    """Base class of test sets of made-up sentences."""

    lines: MadeUp = 300  # [segments]
    seed: Seed = 2  # random seed of the sentences
    idiom_rate: Share = 0.5  # share of sentences with an idiom

    def first(self, sentences: int) -> TestSet:
        return self.model_copy(update={"lines": min(sentences, self.lines)})


class SyntheticTestSet(MadeUpTestSet):
    """Unseen sentences of a synthetic corpus's language."""

    kind: Literal["synthetic"]
    corpus: Name  # a synthetic corpus, for its language
    title: ClassVar[str] = "sentences of a made-up language"
    worker: ClassVar[str] = "creamtea_workers.corpora.synthetic"

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        return TextPlan(corpus=planner.corpus_spec(self.corpus))

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from corpora.needs_corpus(
            (*path, "corpus"), block.get("corpus"), study, corpora.SyntheticCorpus
        )


class PhrasebookTestSet(MadeUpTestSet):
    """Sentences of a phrasebook that are not in the corpus's text, with annotated idioms.

    Each sentence has a filling that its pattern never has in the training text.
    """

    kind: Literal["phrasebook"]
    corpus: Name  # a corpus of kind `phrasebook`
    title: ClassVar[str] = "sentences of a phrasebook"
    worker: ClassVar[str] = "creamtea_workers.corpora.phrasebook"

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        corpus = planner.corpus_spec(self.corpus)
        assert isinstance(corpus, corpora.PhrasebookCorpus)  # `check` ensures it
        file: File = (("corpora", self.corpus, "file"), corpus.file)
        return TextPlan({"corpus": [planner.corpus(self.corpus)]}, aligned=[[file]], corpus=corpus)

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from corpora.needs_corpus(
            (*path, "corpus"), block.get("corpus"), study, corpora.PhrasebookCorpus
        )


class Ibm3TestSet(OfFile):
    """The sentences of a file, with translations sampled like an IBM-3 corpus."""

    kind: Literal["ibm3"]
    corpus: Name  # an IBM-3 corpus, for its tables
    seed: Seed = 2  # random seed of the samples
    title: ClassVar[str] = "sentences of a file with sampled translations"
    worker: ClassVar[str] = "creamtea_workers.corpora.ibm3"
    metrics: ClassVar[dict[str, str]] = {"no_translation": "lines that are omitted"}

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        corpus = planner.corpus_spec(self.corpus)
        assert isinstance(corpus, corpora.Ibm3Corpus)  # `check` ensures it
        inputs = {role: keys for role, keys in corpus.table_inputs(planner).items() if role != "corpus"}
        return TextPlan(inputs, aligned=[[((*place, "source"), self.source)]], corpus=corpus)

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from corpora.needs_corpus((*path, "corpus"), block.get("corpus"), study, corpora.Ibm3Corpus)


class WordTestSet(TestSet):
    """Words in SIGMORPHON's tab-separated files; `limit` takes the first of each language.

    Each language is a group: metrics are computed per language, and averaged. The first N words of a test set
    are an equal number of words of each language, and at least one.
    """

    file: str  # path, with the same names in braces as in its corpus
    limit: Positive | None = None  # [words] only the first of each language
    lines: ClassVar[WordLines | None] = None  # format of its files' lines; if given, the plan checks them

    def parts(self) -> list[dict[str, str]]:
        """Return the values of the names in braces in the path of each language's file."""
        raise NotImplementedError(f"{type(self).__name__} does not name its languages")

    def tested_languages(self) -> list[str]:
        """Return the languages of its words; [] if they are unknown."""
        return []

    def named_files(self) -> list[str]:
        return [corpora.filled(self.file, parts) for parts in self.parts()]

    def first(self, sentences: int) -> TestSet:
        each = max(1, sentences // len(self.named_files()))
        return self.model_copy(update={"limit": each if self.limit is None else min(each, self.limit)})

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        return corpora.word_files([((*place, "file"), path) for path in self.named_files()], self.lines)


class G2pTestSet(WordTestSet):
    """Words and their phones (see the corpus of this kind)."""

    kind: Literal["g2p"]
    languages: corpora.LanguageList  # codes, which replace {language} in the path
    lines: ClassVar[WordLines | None] = PRONUNCIATIONS
    title: ClassVar[str] = "grapheme to phoneme"
    worker: ClassVar[str] = "creamtea_workers.corpora.words"

    def parts(self) -> list[dict[str, str]]:
        return [{"language": language} for language in self.languages]

    def tested_languages(self) -> list[str]:
        return self.languages

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from corpora.needs_parts(path, block, "file", ("language",))


class InflectionTestSet(WordTestSet):
    """Lemmas and inflected forms of the second language of each pair (see the corpus of this kind)."""

    kind: Literal["inflection"]
    pairs: corpora.Pairs  # of languages, as in the corpus
    lines: ClassVar[WordLines | None] = INFLECTIONS
    title: ClassVar[str] = "morphological inflection"
    worker: ClassVar[str] = "creamtea_workers.corpora.words"

    def parts(self) -> list[dict[str, str]]:
        return [corpora.pair_parts(pair) for pair in self.pairs]

    def tested_languages(self) -> list[str]:
        return [parts["low"] for parts in self.parts()]

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from corpora.needs_parts(path, block, "file", ("pair", "high", "low"))
        yield from corpora.needs_other_languages(path, block)


TEST_SETS: Family[Any] = Family("test set", TestSet, "creamtea.methods.test_sets", ("prepare_test_set",))
