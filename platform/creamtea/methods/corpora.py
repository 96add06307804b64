"""Corpora: where training and development text comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from creamtea.contract.kind import StepKind, StepParams
from creamtea.document.mistakes import KeyPath, Mistake, one_of, shown
from creamtea.document.raw import Block, RawStudy, kind_of
from creamtea.document.values import Name, Positive, Seed, Share
from creamtea.methods.family import Family, Method
from creamtea.methods.planning import File, Inputs, Planner, TextPlan
from creamtea.methods.texts import Filters, TextPair, TrainingText


class Corpus(Method):
    """Training and development text. `noun` names the kind in messages: "a corpus of files"."""

    noun: ClassVar[str]
    # whether its numbers (a sampling temperature, say) are parameters that systems are compared by
    sampled: ClassVar[bool] = False
    steps: ClassVar[tuple[StepKind[Any], ...]] = ()  # kinds of steps that only this kind of corpus needs

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        """What its step needs; `place` is the position of the corpus in the study."""
        return TextPlan()

    def describe(self) -> str:
        return self.noun


class FilesCorpus(Corpus):
    """Line-aligned text files."""

    kind: Literal["files"]
    train: Annotated[list[TrainingText], Field(min_length=1)]
    dev: TextPair
    filters: Filters = Filters()
    title: ClassVar[str] = "text files"
    noun: ClassVar[str] = "a corpus of files"
    worker: ClassVar[str] = "creamtea_workers.corpora.files"

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        pairs: list[tuple[KeyPath, TextPair]] = [
            *(((*place, "train", index), pair) for index, pair in enumerate(self.train)),
            ((*place, "dev"), self.dev),
        ]
        aligned: list[list[File]] = [
            [((*path, "source"), pair.source), ((*path, "target"), pair.target)] for path, pair in pairs
        ]
        # what is held out goes in by its files, so that a test set may itself need this corpus
        held_out = [planner.held_out(name) for name in self.filters.held_out]
        for name, source in zip(self.filters.held_out, held_out, strict=True):
            aligned.append([(("test_sets", name, "source"), source.source)])
        return TextPlan(aligned=aligned, held_out=held_out)

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        filters = block.get("filters")
        held_out = filters.get("held_out") if isinstance(filters, dict) else None
        files = [name for name, test_set in study.blocks("test_sets") if kind_of(test_set) == "files"]
        for index, name in enumerate(held_out if isinstance(held_out, list) else []):
            if isinstance(name, str) and name not in files:
                where = (*path, "filters", "held_out", index)
                yield Mistake(where, shown(name), one_of(files, name, "a test set of files"))


class SyntheticCorpus(Corpus):
    """Sentences of a small grammar, translated by sampling the IBM-3 story (SCONES, Appendix B)."""

    kind: Literal["synthetic"]
    train: Annotated[int, Field(ge=10)] = 12000
    dev: Positive = 300
    seed: Seed = 1
    gamma: Annotated[float, Field(ge=0.0)] = 0.5  # sampling temperature; 0 is deterministic, 1 the model
    idiom_rate: Share = 0.25  # share of sentences with an idiom
    title: ClassVar[str] = "a made-up language"
    noun: ClassVar[str] = "a synthetic corpus"
    sampled: ClassVar[bool] = True
    worker: ClassVar[str] = "creamtea_workers.corpora.synthetic"


class Ibm3Params(StepParams):
    max_fertility: int
    iterations: int


IBM3 = StepKind(
    "ibm3",
    1,
    "count IBM-3 tables",
    Ibm3Params,
    inputs={"corpus": "the corpus whose alignment is counted", "subwords": "its subwords"},
    files={"ibm3.npz": "counts (creamtea_workers.corpora.counted)"},
    metrics={
        "mean_fertility": "target subwords per source subword",
        "p1": "probability of a target subword that no source subword gives",
        "entries": "of the translation table t",
        "entropy": "bits, of t",
    },
    points={"log_likelihood": "per target subword, over iterations"},
)


class Ibm3Corpus(Corpus):
    """The source sentences of a corpus of files, translated by sampling an IBM-3 model whose tables were
    counted in an alignment of that corpus' subwords (SCONES, Appendix B)."""

    kind: Literal["ibm3"]
    corpus: Name  # of files
    subwords: Name  # in which the tables are counted and the targets sampled
    gamma: Annotated[float, Field(ge=0.0)] = 1.0  # sampling temperature; 0 is deterministic, 1 the model
    seed: Seed = 1
    max_fertility: Annotated[int, Field(ge=1, le=50)] = 9
    title: ClassVar[str] = "sources of a corpus with sampled translations"
    noun: ClassVar[str] = "an IBM-3 corpus"
    sampled: ClassVar[bool] = True
    worker: ClassVar[str] = "creamtea_workers.corpora.sampled"
    steps: ClassVar[tuple[StepKind[Any], ...]] = (IBM3,)

    def plan(self, place: KeyPath, planner: Planner) -> TextPlan:
        return TextPlan(inputs=self.table_inputs(planner))

    def table_inputs(self, planner: Planner) -> Inputs:
        """The corpus of files, its subwords, and the tables counted in their alignment."""
        inputs = {
            "corpus": [planner.corpus(self.corpus)],
            "subwords": [planner.subwords(self.corpus, self.subwords)],
        }
        tables = planner.add(
            IBM3,
            f"{self.corpus}/{self.subwords}/{self.max_fertility}",
            Ibm3Params(max_fertility=self.max_fertility, iterations=planner.alignment.iterations),
            inputs,
            {"corpus": self.corpus, "subwords": self.subwords},
        )
        return {**inputs, "ibm3": [tables]}

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from needs_corpus((*path, "corpus"), block.get("corpus"), study, FilesCorpus)
        yield from study.unknown_key(path, block, "subwords", "subwords")


def needs_corpus(path: KeyPath, name: Any, study: RawStudy, corpus: type[Corpus]) -> Iterator[Mistake]:
    """A mistake if `name` is not a corpus of that kind."""
    fitting = [other for other, block in study.blocks("corpora") if CORPORA.kind_of(block) is corpus]
    if not isinstance(name, str) or name in fitting:
        return
    actual = CORPORA.kind_of(study.named("corpora", name))
    found = f"{shown(name)}, {actual.noun}" if actual else shown(name)
    yield Mistake(path, found, one_of(fitting, name, corpus.noun))


CORPORA: Family[Any] = Family("corpus", Corpus, "creamtea.methods.corpora", ("prepare_corpus",))
