"""Searches, by which a system finds its translations, and precisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, model_validator

from creamtea.contract.step import StepParams
from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, shown, target_language
from creamtea.document.values import Above0, Factor, Positive, Seed, unstated
from creamtea.methods.family import Family, Method
from creamtea.methods.metrics import METRICS, Metric
from creamtea.methods.texts import check_within_vocabulary
from creamtea.words import is_unspaced

Precision = Literal["fp32", "bf16", "fp16", "int8"]
Device = Literal["cpu", "gpu"]

PRECISIONS: dict[str, tuple[Device, ...]] = {
    "fp32": ("cpu", "gpu"),
    "bf16": ("cpu", "gpu"),  # fp32's range in 16 bits
    "fp16": ("gpu",),
    "int8": ("cpu",),  # weights and activations of linear layers
}
assert set(PRECISIONS) == set(get_args(Precision))
INT8_VERSION = 2  # raised when the results of int8 layers change, but not those of other precisions


class InPrecision(StepParams):
    """Parameters of a step that runs a model in a precision."""

    precision: Precision
    int8_version: int | None = unstated(None)

    @model_validator(mode="before")
    @classmethod
    def _with_version(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("precision") == "int8":
            return {"int8_version": INT8_VERSION, **values}
        return values


# ---------------------------------------------------------------- searches


class Search(Method):
    """Finds translations of at most `max_length_ratio` times the source's subwords, plus 10."""

    # longest hypothesis: this × the source's subwords, plus 10; memory is allocated for all of it
    max_length_ratio: Annotated[float, Field(gt=0.0, le=100.0)] = 2.0
    maximises: ClassVar[bool] = True  # it looks for a high score, and does not draw at random
    # settings that cannot exceed the size of the vocabulary
    within_vocabulary: ClassVar[tuple[str, ...]] = ()
    excluded_precisions: ClassVar[Mapping[str, str]] = {}  # precision: the reason
    in_ctranslate2: ClassVar[bool] = False  # CTranslate2 has it too
    # it chooses after all sentences of a test set have been searched: only a decode step can use it
    settles: ClassVar[bool] = False

    def scored_by(self) -> Metric | None:
        """Return the metric by which it chooses, if any; the step's key pins its model and program."""
        return None

    @property
    def most_hypotheses(self) -> int:
        """Largest number of hypotheses that it can find for a sentence."""
        return 1

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from check_within_vocabulary(path, block, cls.within_vocabulary, study)


class Greedy(Search):
    """The best token at every step."""

    kind: Literal["greedy"] = "greedy"
    title: ClassVar[str] = "greedy search"
    in_ctranslate2: ClassVar[bool] = True
    worker: ClassVar[str] = "creamtea_workers.search.greedy"

    def describe(self) -> str:
        return "greedy"


class Beam(Search):
    """Beam search.

    By default scores are divided by length, as in Sockeye and others: without that, beams prefer short
    outputs. The studies of papers/ use 0.0, as their papers do.
    """

    kind: Literal["beam"]
    width: Annotated[int, Field(ge=1, le=1000)] = 4  # [hypotheses] kept at each step
    # the score is divided by length to this power, which must fit single precision; 0: not divided
    length_normalization: Annotated[float, Field(ge=0.0, le=5.0)] = 1.0
    # base of this power: the length, or GNMT's (5 + length) / 6 (Wu et al. 2016, Eq. 14)
    length_penalty: Literal["length", "gnmt"] = unstated("length")
    # GNMT's β: β × the sum over source positions of log(min(attention of all steps, 1)) is added to the
    # divided score. The attention is the mean over the heads of the last layer
    coverage_penalty: Annotated[float, Field(ge=0.0, le=100.0)] = unstated(0.0)
    title: ClassVar[str] = "beam search"
    in_ctranslate2: ClassVar[bool] = True
    worker: ClassVar[str] = "creamtea_workers.search.beam"
    within_vocabulary: ClassVar[tuple[str, ...]] = ("width",)

    @property
    def most_hypotheses(self) -> int:
        return self.width

    @property
    def ranks_by_length(self) -> bool:
        """True if hypotheses are ranked by score / length^a, also with a = 0."""
        return self.length_penalty == "length" and not self.coverage_penalty

    def describe(self) -> str:
        length = "length" if self.length_penalty == "length" else "GNMT length"
        normalised = f" / {length}^{self.length_normalization:g}" if self.length_normalization else ""
        coverage = f" + {self.coverage_penalty:g} coverage" if self.coverage_penalty else ""
        return f"beam {self.width}{normalised}{coverage}"

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        if block.get("length_penalty") == "gnmt" and block.get("length_normalization") == 0:
            found = "gnmt with length_normalization 0, which divides by nothing"
            yield Mistake((*path, "length_penalty"), found, "a length_normalization above 0")
        system = study.named(str(path[0]), path[1]) or {}
        if block.get("coverage_penalty") and system.get("ensemble") is True:
            found = f"{shown(block['coverage_penalty'])} in an ensemble"
            yield Mistake(
                (*path, "coverage_penalty"), found, "a system of one model, whose attention it reads"
            )


class Exact(Search):
    """Depth-first search for the best of all hypotheses that `max_length_ratio` allows.

    A beam search's score is the first bound (Stahlberg and Byrne 2019). Translations that are not proved when
    a limit is reached are reported as such.
    """

    kind: Literal["exact"]
    max_states: Positive = 1_000_000  # [decoder states] largest number per sentence (as in the SCONES paper)
    # [seconds] largest time per sentence; makes an output depend on the machine
    max_seconds: Above0 | None = None
    # [subwords] only hypotheses of at most this length (Peters and Martins 2021)
    depth: Positive | None = None
    # [hypotheses] width of the beam search that gives the first bound
    beam: Annotated[int, Field(ge=1, le=1000)] = 4
    title: ClassVar[str] = "exact search"
    worker: ClassVar[str] = "creamtea_workers.search.exact"
    within_vocabulary: ClassVar[tuple[str, ...]] = ("beam",)
    excluded_precisions: ClassVar[Mapping[str, str]] = {
        "int8": "exact search compares prefixes of all lengths, whose scores int8 rounds differently in each "
        "batch, so that nothing is proved"
    }
    files: ClassVar[Mapping[str, str]] = {"exact.jsonl": "index, outcome, expansions, beam_score"}
    metrics: ClassVar[Mapping[str, str]] = {
        "proved": "share of sentences whose best translation is proved",
        "improved": "share with a better translation than the beam's that is not proved to be the best",
        "limit": "share for which a limit was reached without a better translation",
        "expansions": "decoder states, mean per sentence",
    }

    def describe(self) -> str:
        return "exact" if self.depth is None else f"exact up to {self.depth} subwords"

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        if "length_normalization" in block:
            found = f"{shown(block['length_normalization'])} in an exact search"
            allowed = (
                "no length_normalization: exact search prunes by a score that only falls as a hypothesis "
                "grows, which a normalised one does not"
            )
            yield Mistake((*path, "length_normalization"), found, allowed, settled=True)


OptionalShare = Annotated[float | None, Field(gt=0.0, lt=1.0)]


class Sampling(Search):
    """Searches that draw at random.

    SCONES' token scores are first normalised to a distribution. Then the temperature, top_k, top_p and
    epsilon apply in this order, each to the result of the one before. The most probable subword always stays.
    """

    top_k: Positive | None = None  # [subwords] draw only from this many best
    # draw only from the smallest set of most probable subwords with this total probability (nucleus sampling,
    # Holtzman et al. 2020)
    top_p: OptionalShare = unstated(None)
    # draw only from subwords with a probability above this (Hewitt et al. 2022; for MBR Freitag et al. 2023,
    # with 0.02)
    epsilon: OptionalShare = unstated(None)
    temperature: Factor = 1.0  # below 1 prefers probable subwords, above 1 evens them out
    seed: Seed = 1  # random seed; the draws of a sentence depend only on it and on the source
    maximises: ClassVar[bool] = False
    within_vocabulary: ClassVar[tuple[str, ...]] = ("top_k",)

    def drawn_words(self) -> str:
        top_k = "" if self.top_k is None else f" top-{self.top_k}"
        top_p = "" if self.top_p is None else f" p={self.top_p:g}"
        epsilon = "" if self.epsilon is None else f" ε={self.epsilon:g}"
        temperature = "" if self.temperature == 1.0 else f" T={self.temperature:g}"
        return top_k + top_p + epsilon + temperature


class Sample(Sampling):
    """Ancestral sampling."""

    kind: Literal["sample"]
    title: ClassVar[str] = "ancestral sampling"
    worker: ClassVar[str] = "creamtea_workers.search.sample"

    def describe(self) -> str:
        return f"sample{self.drawn_words()}"


UTILITIES = {"chrf": "chrF", "bleu": "BLEU"}  # sentence-level, by their names in reports


class Mbr(Sampling):
    """Minimum Bayes risk over samples: the sample with the highest mean utility against the others.

    Eikema and Aziz (2020).
    """

    kind: Literal["mbr"]
    samples: Annotated[int, Field(ge=2, le=1000)] = 32  # [samples] drawn per sentence
    utility: Literal["chrf", "bleu"] = "chrf"  # sentence metric by which samples are compared
    title: ClassVar[str] = "minimum Bayes risk decoding"
    worker: ClassVar[str] = "creamtea_workers.search.candidates"

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        if block.get("utility") == "bleu" and is_unspaced(target_language(study)):
            found = f"bleu, whose words {target_language(study)!r} does not part by blanks"
            yield Mistake((*path, "utility"), found, "chrf")

    def describe(self) -> str:
        return f"MBR of {self.samples} samples{self.drawn_words()} by {UTILITIES[self.utility]}"


class Rerank(Sampling):
    """The candidate that a metric scores best.

    A metric that needs no references scores each candidate. Any other metric compares each candidate with all
    candidates of its sentence, and the best mean wins: minimum Bayes risk by this metric (Fernandes et al.
    2022). The metric runs once for the whole test set.
    """

    kind: Literal["rerank"]
    metric: Metric  # as in the study's `metrics`, but not a metric of words
    candidates: Annotated[int, Field(ge=2, le=1000)] = 16  # [hypotheses] per sentence
    # where candidates come from: samples, or a beam of this width (ranked by score / length)
    found_by: Literal["samples", "beam"] = "samples"
    title: ClassVar[str] = "reranking by a metric"
    worker: ClassVar[str] = "creamtea_workers.search.candidates"
    settles: ClassVar[bool] = True
    within_vocabulary: ClassVar[tuple[str, ...]] = ("top_k",)
    metrics: ClassVar[Mapping[str, str]] = {
        "reranked": "share of outputs that are not the candidate with the highest score; detail.signature"
    }

    def scored_by(self) -> Metric | None:
        return self.metric

    def describe(self) -> str:
        found = f"samples{self.drawn_words()}" if self.found_by == "samples" else "hypotheses of a beam"
        return f"best of {self.candidates} {found} by {self.metric.describe()}"

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        metric = block.get("metric")
        yield from METRICS.check((*path, "metric"), metric, study)
        kind = METRICS.kind_of(metric)
        if kind is not None and kind.by_group:
            found = f"{kind.title}, a mean over words of languages"
            yield Mistake((*path, "metric"), found, "a metric of segments")
        if block.get("found_by") == "beam":
            for key in Sampling.model_fields.keys() - Search.model_fields.keys() & block.keys():
                yield Mistake((*path, key), f"{key} beside `found_by: beam`", "no such key: samples have it")
        latency = study.data.get("latency")
        timed = latency.get("systems") if isinstance(latency, dict) else []
        if timed is None or (isinstance(timed, list) and path[1] in timed):
            found = f"{path[1]}, which is reranked when all sentences are translated"
            yield Mistake(("latency", "systems"), found, "systems without `kind: rerank`")


SEARCHES: Family[Any] = Family("search", Search, "creamtea.methods.searches", ("build",))
