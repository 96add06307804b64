"""Corpora: where training and development text comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from creamtea.contract.step import StepKind, StepParams
from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, kind_of, one_of, repeated, shown
from creamtea.document.values import Copies, MadeUp, Name, Seed, Share
from creamtea.methods.family import Family, Method
from creamtea.methods.planning import CheckedFile, File, Inputs, Planner, TextPlan
from creamtea.methods.texts import (
    INFLECTIONS,
    PRONUNCIATIONS,
    Filters,
    TextPair,
    TrainingText,
    WordLines,
    in_column,
    needs_joint,
)


class Corpus(Method):
    """Training and development text. `noun` names the kind in messages: "a corpus of files"."""

    noun: ClassVar[str]
    # True: its numbers (such as a sampling temperature) are parameters by which systems are compared
    sampled: ClassVar[bool] = False
    steps: ClassVar[tuple[StepKind[Any], ...]] = ()  # kinds of steps that only this kind of corpus needs

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        """Return the inputs and files of its step; `place` is the position of the corpus in the study."""
        return TextPlan()

    def describe(self) -> str:
        return self.noun


class FilesCorpus(Corpus):
    """Line-aligned text files."""

    kind: Literal["files"]
    # training text; several pairs of files are joined
    train: Annotated[list[TrainingText], Field(min_length=1)]
    dev: TextPair  # development text, by which training chooses the checkpoint and when to stop
    filters: Filters = Filters()  # filters that drop training pairs
    title: ClassVar[str] = "text files"
    noun: ClassVar[str] = "a corpus of files"
    worker: ClassVar[str] = "creamtea_workers.corpora.files"

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        train = [((*place, "train", index), pair) for index, pair in enumerate(self.train)]
        text = plan_pairs([*train, ((*place, "dev"), self.dev)])
        # test sets to hold out are given by their files, so that a test set may itself need this corpus
        held_out = [planner.held_out(name) for name in self.filters.held_out]
        for name, source in zip(self.filters.held_out, held_out, strict=True):
            text.aligned.append([(("test_sets", name, "source"), source.source)])
        return replace(text, held_out=held_out)

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        filters = block.get("filters")
        held_out = filters.get("held_out") if isinstance(filters, dict) else None
        files = [name for name, test_set in study.blocks("test_sets") if kind_of(test_set) == "files"]
        for index, name in enumerate(held_out if isinstance(held_out, list) else []):
            if isinstance(name, str) and name not in files:
                where = (*path, "filters", "held_out", index)
                yield Mistake(where, shown(name), one_of(files, name, "a test set of files"))


CHECKED_LINES = 10**6  # first lines of a tab-separated file that a plan checks; its step checks all


def plan_pairs(pairs: Iterable[tuple[KeyPath, TextPair]]) -> TextPlan:
    """Plan pairs of files, given with their positions in the study; lines of columns are checked."""
    plan = TextPlan()
    for place, pair in pairs:
        files: list[File] = [((*place, "source"), pair.source), ((*place, "target"), pair.target)]
        plan.aligned.append(files)
        for column, file in zip(pair.columns or [], files, strict=False):
            read = partial(in_column, column=column)
            plan.checked.append(
                CheckedFile(file, CHECKED_LINES, read, f"text in column {column} of each line")
            )
    return plan


Gamma = Annotated[float, Field(ge=0.0, le=10.0**6)]  # a temperature; its reciprocal is an exponent


class SyntheticCorpus(Corpus):
    """Sentences of a small grammar, translated by sampling the IBM-3 story (SCONES, Appendix B)."""

    kind: Literal["synthetic"]
    # [sentence pairs] of training text, made in memory
    train: Annotated[int, Field(ge=10, le=10**7)] = 12000
    dev: MadeUp = 300  # [sentence pairs] of development text
    seed: Seed = 1  # random seed of the sentences
    # sampling temperature of the translations; 0 is deterministic, 1 the unchanged model
    gamma: Gamma = 0.5
    idiom_rate: Share = 0.25  # share of sentences with an idiom
    title: ClassVar[str] = "a made-up language"
    noun: ClassVar[str] = "a synthetic corpus"
    sampled: ClassVar[bool] = True
    worker: ClassVar[str] = "creamtea_workers.corpora.synthetic"


class PhrasebookCorpus(Corpus):
    """Sentence pairs made from a phrasebook, and pairs from additional text files.

    A phrasebook is a text file of patterns and of words that fill them. A tenth of the fillings of each
    pattern is held out: every development sentence has such a filling, no training sentence has one.
    """

    kind: Literal["phrasebook"]
    file: str  # path of the phrasebook (format: workers/creamtea_workers/corpora/phrasebook.py)
    train: Annotated[int, Field(ge=10, le=10**6)] = (
        30000  # [sentence pairs] of the phrasebook's training text
    )
    dev: MadeUp = 300  # [sentence pairs] of development text
    seed: Seed = 1  # random seed of the sentences and of the held-out fillings
    idiom_rate: Share = 0.1  # share of sentences with an idiom
    beside: list[TextPair] = []  # further training text; the phrasebook makes none of its sentences
    title: ClassVar[str] = "a phrasebook"
    noun: ClassVar[str] = "a phrasebook"
    worker: ClassVar[str] = "creamtea_workers.corpora.phrasebook"

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        beside = plan_pairs(((*place, "beside", n), pair) for n, pair in enumerate(self.beside))
        return replace(beside, aligned=[[((*place, "file"), self.file)], *beside.aligned])


class Ibm3Params(StepParams):
    max_fertility: int
    iterations: int


IBM3 = StepKind(
    "ibm3",
    1,
    "count IBM-3 tables",
    Ibm3Params,
    worker="creamtea_workers.steps.align:count_ibm3",
    inputs={"encode": "the text whose alignment is counted, as tokens", "subwords": "its subwords"},
    files={"ibm3.npz": "counts (creamtea_workers.corpora.ibm3)"},
    metrics={
        "mean_fertility": "target subwords per source subword",
        "p1": "probability of a target subword that no source subword gives",
        "entries": "in the translation table t",
        "entropy": "of t, in bits",
    },
    points={"log_likelihood": "per target subword, over iterations"},
)


class Ibm3Corpus(Corpus):
    """The source sentences of a corpus of files with sampled translations.

    They are sampled from an IBM-3 model whose tables are counted in an alignment of the corpus' subwords
    (SCONES paper, Appendix B).
    """

    kind: Literal["ibm3"]
    corpus: Name  # a corpus of files
    subwords: Name  # subwords of the tables and of the sampled targets
    gamma: Gamma = 1.0  # sampling temperature; 0 is deterministic, 1 the unchanged model
    seed: Seed = 1  # random seed of the samples
    # [subwords] largest number of target subwords per source subword
    max_fertility: Annotated[int, Field(ge=1, le=50)] = 9
    title: ClassVar[str] = "sources of a corpus with sampled translations"
    noun: ClassVar[str] = "an IBM-3 corpus"
    sampled: ClassVar[bool] = True
    worker: ClassVar[str] = "creamtea_workers.corpora.ibm3"
    steps: ClassVar[tuple[StepKind[Any], ...]] = (IBM3,)

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        return TextPlan(inputs=self.table_inputs(planner))

    def table_inputs(self, planner: Planner) -> Inputs:
        """Return the corpus of files, its subwords, and the tables counted in their alignment."""
        inputs = {
            "corpus": [planner.corpus(self.corpus)],
            "subwords": [planner.subwords(self.corpus, self.subwords)],
        }
        tables = planner.add(
            IBM3,
            f"{self.corpus}/{self.subwords}/{self.max_fertility}",
            Ibm3Params(max_fertility=self.max_fertility, iterations=planner.alignment.iterations),
            {"encode": [planner.encode(self.corpus, self.subwords)], "subwords": inputs["subwords"]},
            {"corpus": self.corpus, "subwords": self.subwords},
        )
        return {**inputs, "ibm3": [tables]}

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from needs_corpus((*path, "corpus"), block.get("corpus"), study, FilesCorpus)
        yield from study.unknown_key(path, block, "subwords", "subwords")
        yield from needs_joint((*path, "subwords"), block.get("subwords"), study, "an IBM-3 corpus")


LanguageList = Annotated[list[Name], Field(min_length=1)]
# a language with much training text and one with little: "adyghe--kabardian"
Pair = Annotated[str, Field(pattern=r"^[a-z]+(-[a-z]+)*--[a-z]+(-[a-z]+)*$")]
Pairs = Annotated[list[Pair], Field(min_length=1)]


def pair_parts(pair: str) -> dict[str, str]:
    """Return the values of {pair}, {high} and {low} in a path."""
    high, _, low = pair.partition("--")
    return {"pair": pair, "high": high, "low": low}


def filled(path: str, parts: Mapping[str, str]) -> str:
    """Replace names in braces in a path by their values."""
    for name, value in parts.items():
        path = path.replace(f"{{{name}}}", value)
    return path


class TrainingWords(NamedTuple):
    """A file of training words of one language; each word occurs `repeat` times."""

    path: str
    language: str
    repeat: int = 1


class WordCorpus(Corpus):
    """Words in SIGMORPHON's tab-separated files, one or more of each language."""

    has_tags: ClassVar[bool] = True  # a source may have tags beside its language
    # targets of different words share tokens, such as phones
    has_shared_tokens: ClassVar[bool] = True
    lines: ClassVar[WordLines | None] = None  # format of its files' lines; if given, the plan checks them

    def named_files(self) -> Iterator[File]:
        """Yield every file, with its place in the corpus."""
        raise NotImplementedError(f"{type(self).__name__} does not name its files")

    def training_files(self) -> list[TrainingWords]:
        """Return the training files; [] if they are unknown."""
        return []

    def made_up(self) -> int:
        """Return the number of additional made-up training words."""
        return 0

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        return word_files([((*place, *key), path) for key, path in self.named_files()], self.lines)


def word_files(files: Sequence[File], lines: WordLines | None) -> TextPlan:
    """Plan files of words; their lines are checked if their columns are known."""
    checked = [CheckedFile(file, None, lines.read, lines.allowed) for file in files] if lines else []
    return TextPlan(aligned=[[file] for file in files], checked=checked)


class G2pCorpus(WordCorpus):
    """Words and their phones in several languages (SIGMORPHON 2020, task 1).

    A line is word TAB phones; paths contain {language}. A source is the language as one symbol and the word:
    "<ady>абан".
    """

    kind: Literal["g2p"]
    languages: LanguageList  # codes, which replace {language} in the paths
    train: str  # path of training words
    dev: str  # path of development words
    title: ClassVar[str] = "grapheme to phoneme"
    noun: ClassVar[str] = "a corpus of pronunciations"
    has_tags: ClassVar[bool] = False
    lines: ClassVar[WordLines | None] = PRONUNCIATIONS
    worker: ClassVar[str] = "creamtea_workers.corpora.words"

    def named_files(self) -> Iterator[File]:
        for key, path in (("train", self.train), ("dev", self.dev)):
            for language in self.languages:
                yield (key,), filled(path, {"language": language})

    def training_files(self) -> list[TrainingWords]:
        return [
            TrainingWords(filled(self.train, {"language": language}), language) for language in self.languages
        ]

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        for key in ("train", "dev"):
            yield from needs_parts(path, block, key, ("language",))


class InflectionCorpus(WordCorpus):
    """Lemmas and inflected forms (SIGMORPHON 2019, task 1).

    A line is lemma TAB form TAB tags. Each pair has a language with many words and one with few; paths
    contain {pair}, {high} and {low}. A source is the language, the lemma and the tags, "<zulu>hamba<V><PST>";
    development words are in the languages with few words.

    `repeat` up-samples the words of the languages with few. `hallucinated` adds this number of made-up words
    for each of these languages: characters that a lemma and its form share are replaced by random ones
    (Anastasopoulos and Neubig 2019).
    """

    kind: Literal["inflection"]
    pairs: Pairs  # a language with many words and one with few, such as adyghe--kabardian
    high: str  # path of training words of the languages with many
    low: str  # path of training words of the languages with few
    dev: str  # path of development words
    repeat: Copies = 1  # copies of each word of the languages with few
    hallucinated: Annotated[int, Field(ge=0, le=10**6)] = 0  # [words] made up for each language with few
    seed: Seed = 1  # random seed of the made-up words
    title: ClassVar[str] = "morphological inflection"
    noun: ClassVar[str] = "a corpus of inflected forms"
    has_shared_tokens: ClassVar[bool] = False
    lines: ClassVar[WordLines | None] = INFLECTIONS
    worker: ClassVar[str] = "creamtea_workers.corpora.words"

    def named_files(self) -> Iterator[File]:
        for key, path in (("high", self.high), ("low", self.low), ("dev", self.dev)):
            for pair in self.pairs:
                yield (key,), filled(path, pair_parts(pair))

    def training_files(self) -> list[TrainingWords]:
        pairs = [pair_parts(pair) for pair in self.pairs]
        return [
            TrainingWords(filled(path, parts), parts[part], repeat)
            for part, path, repeat in (("high", self.high, 1), ("low", self.low, self.repeat))
            for parts in pairs
        ]

    def made_up(self) -> int:
        return self.hallucinated * len(self.pairs)

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        for key in ("high", "low", "dev"):
            yield from needs_parts(path, block, key, ("pair", "high", "low"))
        yield from needs_other_languages(path, block)


def needs_parts(path: KeyPath, block: Block, key: str, parts: Sequence[str]) -> Iterator[Mistake]:
    """Check the languages or pairs of a block, and that the path `key` leads to a file of each."""
    entries = block.get("pairs", block.get("languages"))
    yield from repeated(entries, (*path, "pairs" if "pairs" in block else "languages"))
    count = len(entries) if isinstance(entries, list) else 0
    name = block.get(key)
    if isinstance(name, str) and count > 1 and not any(f"{{{part}}}" in name for part in parts):
        listed = " or ".join(f"{{{part}}}" for part in parts)
        yield Mistake((*path, key), f"{shown(name)}, one file for all", f"a path with {listed} in it")


def needs_other_languages(path: KeyPath, block: Block) -> Iterator[Mistake]:
    """Report pairs that share their language with few words: its words would be counted twice."""
    pairs = block.get("pairs")
    first: dict[str, str] = {}
    for index, pair in enumerate(pairs if isinstance(pairs, list) else []):
        other = first.setdefault(pair_parts(str(pair))["low"], pair)
        if other != pair:
            found = f"{pair} beside {other}, which counts the same words twice"
            yield Mistake((*path, "pairs", index), found, "a study of its own for each of the two")


def needs_corpus(path: KeyPath, name: Any, study: RawStudy, corpus: type[Corpus]) -> Iterator[Mistake]:
    """Report `name` if it is not a corpus of that kind."""
    fitting = [other for other, block in study.blocks("corpora") if CORPORA.kind_of(block) is corpus]
    if not isinstance(name, str) or name in fitting:
        return
    actual = CORPORA.kind_of(study.named("corpora", name))
    found = f"{shown(name)}, {actual.noun}" if actual else shown(name)
    yield Mistake(path, found, one_of(fitting, name, corpus.noun))


CORPORA: Family[Any] = Family("corpus", Corpus, "creamtea.methods.corpora", ("prepare_corpus",))
