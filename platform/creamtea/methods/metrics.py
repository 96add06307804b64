"""Metrics of translations, significance tests, the sweep of recall, and the latency run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from creamtea.contract.step import Column
from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, shown
from creamtea.document.values import BelowOne, Count, Name, Positive, Seed, Strict, unstated
from creamtea.methods.family import Family, Method
from creamtea.scorers import ScorerPins, UnknownScorer, find_scorer
from creamtea.words import CHINESE, in_han, is_unspaced, main_language


class Metric(Method):
    """A corpus-level score on the scale of the metric's authors."""

    digits: ClassVar[int] = 1  # decimals of a score in every table and figure
    better: ClassVar[str] = "higher"
    counts_length: ClassVar[bool] = False  # its score step also writes `length_ratio`
    by_group: ClassVar[bool] = False  # a mean over a test set's groups: resamples keep each group's size
    several_references: ClassVar[bool] = False  # it uses all references; other metrics use the first
    of_strings: ClassVar[bool] = False  # it counts equal pieces of text
    # the input of comparisons: outputs, or the segment scores of score steps, so that a neural metric does
    # not run twice
    compares: ClassVar[Literal["outputs", "segment scores"]] = "outputs"

    def name(self) -> str:
        """Return its name in places and tables: the kind and unusual settings ("bleu-intl")."""
        raise NotImplementedError(f"{type(self).__name__} does not name itself")

    def row(self) -> str:
        """Return the name of the score step's metric row."""
        return self.kind

    @property
    def needs_references(self) -> bool:
        """True if it scores only test sets with references."""
        return True

    def checkpoint(self) -> str | None:
        """Return the path or name of its model; a file under --data is pinned by its content."""
        return None

    def scorer_pins(self) -> ScorerPins | None:
        """Return the pins of the scorer that computes it on this machine; None if no scorer does.

        Raises creamtea.scorers.UnknownScorer.
        """
        return None

    def of_step(self) -> Metric:
        """Return the metric without settings that only reports read, so that a new title changes no key."""
        return self

    def for_target(self, language: str) -> Metric:
        """Return the metric with defaults for the target language where the study sets nothing."""
        return self

    def column(self, signature: str = "") -> Column:
        return Column(
            self.name(), self.describe(), self.digits, self.better, signature=signature, group="quality"
        )


MEAN_OF_GROUPS = (
    "mean over the test set's groups, bootstrap interval over the words of each group; detail.signature; "
    "with several groups also for each group, subject: the group"
)
LENGTH_RATIO = "hypothesis over reference tokens, as the metric's tokenizer counts them"


# sacreBLEU's tokenizers
Tokenizer = Literal[
    "13a", "intl", "char", "none", "zh", "ja-mecab", "ko-mecab", "spm", "flores101", "flores200", "spBLEU-1K"
]
BY_BLANKS = ("13a", "intl", "none")  # they split at blanks and marks only


def bleu_tokenizer(language: str) -> Tokenizer:
    """Choose the tokenizer for a target language.

    Chinese, Japanese and Korean get sacreBLEU's choice, and codes that name Chinese characters that of
    Chinese. Other languages without blanks get characters, since each of their sentences would be one word.
    All others get 13a.
    """
    chosen: dict[str, Tokenizer] = {"ja": "ja-mecab", "ko": "ko-mecab", **dict.fromkeys(CHINESE, "zh")}
    other: Tokenizer = "zh" if in_han(language) else "char" if is_unspaced(language) else "13a"
    return chosen.get(main_language(language), other)


def development_tokenizer(language: str) -> Tokenizer:
    """Choose the tokenizer for validations: `bleu_tokenizer`, but never MeCab.

    Every validation of a training splits the whole development set, for which MeCab is slow.
    """
    chosen = bleu_tokenizer(language)
    if not chosen.endswith("-mecab"):
        return chosen
    return "char" if is_unspaced(language) else "13a"


class Bleu(Metric):
    """BLEU (Papineni et al. 2002) as sacreBLEU computes it (Post 2018)."""

    kind: Literal["bleu"]
    # sacreBLEU's tokenizer; none given: by target language, zh for Chinese, ja-mecab for Japanese, ko-mecab
    # for Korean, char for other languages without blanks between words, 13a for all others
    tokenize: Tokenizer | None = None
    # outputs and references are lower-cased first
    lowercase: bool = unstated(False)
    title: ClassVar[str] = "BLEU"
    several_references: ClassVar[bool] = True
    of_strings: ClassVar[bool] = True
    worker: ClassVar[str] = "creamtea_workers.metrics.sacrebleu_metrics"
    counts_length: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, str]] = {
        "bleu": "0 to 100, bootstrap interval over segments; detail.signature",
        "length_ratio": LENGTH_RATIO,
    }

    def describe(self) -> str:
        return f"BLEU ({', '.join(unusual)})" if (unusual := self._unusual("lower-cased")) else "BLEU"

    def name(self) -> str:
        return "-".join(["bleu", *self._unusual("lc")])

    def for_target(self, language: str) -> Metric:
        return self if self.tokenize else self.model_copy(update={"tokenize": bleu_tokenizer(language)})

    def _unusual(self, lowercase: str) -> list[str]:
        """List the settings that differ from sacreBLEU's defaults.

        `lowercase`: the name of the setting about letter case.
        """
        other = [self.tokenize] if self.tokenize not in (None, "13a") else []
        return [*filter(None, other), *[lowercase] * self.lowercase]


class Chrf(Metric):
    """chrF, or chrF++ with words (Popović 2015, 2017), as sacreBLEU computes it."""

    kind: Literal["chrf"]
    # [words] longest word n-gram that counts; 2 is chrF++
    word_order: Annotated[int, Field(ge=0, le=2)] = 0
    title: ClassVar[str] = "chrF"
    several_references: ClassVar[bool] = True
    of_strings: ClassVar[bool] = True
    worker: ClassVar[str] = "creamtea_workers.metrics.sacrebleu_metrics"
    metrics: ClassVar[Mapping[str, str]] = {
        "chrf": "0 to 100, bootstrap interval over segments; detail.signature"
    }

    def describe(self) -> str:
        return "chrF" + "+" * self.word_order

    def name(self) -> str:
        return "chrf" + "+" * self.word_order


class Ter(Metric):
    """Translation edit rate (Snover et al. 2006) as sacreBLEU computes it; lower is better.

    It counts insertions, deletions, substitutions and shifts of words per 100 words of the reference.
    """

    kind: Literal["ter"]
    # separate punctuation from words, and Chinese and Japanese characters from each other; none given: only
    # for languages without blanks between words
    normalized: bool | None = None
    case_sensitive: bool = False  # upper and lower case differ
    title: ClassVar[str] = "TER"
    better: ClassVar[str] = "lower"
    several_references: ClassVar[bool] = True
    of_strings: ClassVar[bool] = True
    worker: ClassVar[str] = "creamtea_workers.metrics.sacrebleu_metrics"
    metrics: ClassVar[Mapping[str, str]] = {
        "ter": "0 and more, bootstrap interval over segments; detail.signature"
    }

    def describe(self) -> str:
        return f"TER ({', '.join(own)})" if (own := self._unusual("cased", "normalised")) else "TER"

    def name(self) -> str:
        return "-".join(["ter", *self._unusual("cased", "norm")])

    def for_target(self, language: str) -> Metric:
        set_by_study = self.normalized is not None
        return self if set_by_study else self.model_copy(update={"normalized": is_unspaced(language)})

    def _unusual(self, cased: str, normalised: str) -> list[str]:
        """List the words for the settings that differ from sacreBLEU's defaults."""
        return [*[cased] * self.case_sensitive, *[normalised] * bool(self.normalized)]


DEFAULT_COMET = "Unbabel/wmt22-comet-da"


class OfProgram(Metric):
    """A metric that another program computes, in its own environment."""

    worker: ClassVar[str] = "creamtea_workers.metrics.scorer"
    compares: ClassVar[Literal["outputs", "segment scores"]] = "segment scores"

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        """Check a model's name: it is an argument of the program, or a path below --data."""
        model = block.get("model")
        if isinstance(model, str) and not (model.strip("/") and model.isprintable() and model[0] != "-"):
            yield Mistake((*path, "model"), shown(model), "a name or path that does not begin with -")


class Comet(OfProgram):
    """COMET in its own environment. `model` is a model name or a local checkpoint path."""

    kind: Literal["comet"]
    model: str = DEFAULT_COMET  # name of a COMET model, or the path of a checkpoint on this machine
    batch_size: Positive = 16  # [segments] scored at a time
    # the model needs no references; assumed if its name has "kiwi" or "-qe-"
    reference_free: bool = unstated(False)
    title: ClassVar[str] = "COMET"
    digits: ClassVar[int] = 4
    metrics: ClassVar[Mapping[str, str]] = {
        "comet": "as the model scales it, bootstrap interval over segments; detail.signature"
    }

    def describe(self) -> str:
        return "COMET" if self.model == DEFAULT_COMET else f"COMET ({_short(self.model)})"

    def name(self) -> str:
        return "comet" if self.model == DEFAULT_COMET else f"comet-{_short(self.model)}"

    @property
    def needs_references(self) -> bool:
        name = self.model.lower()
        return not (self.reference_free or "kiwi" in name or "-qe-" in name)

    def checkpoint(self) -> str | None:
        return self.model


class Display(Strict):
    """How reports show a metric's scores. `title` empty: its name."""

    title: Annotated[str, Field(max_length=60)] = ""  # heading of its column; empty: its name
    digits: Annotated[int, Field(ge=0, le=6)] = 3  # [decimals] shown
    better: Literal["higher", "lower"] = "higher"  # which scores are good


class Command(OfProgram):
    """A program that scores segments in an environment of its own.

    `scorer` is its name on this machine. `model` is a path below --data, which the key pins by content, or a
    name that the program knows.
    """

    kind: Literal["command"]
    scorer: Name  # the program's name in this machine's file of scorers
    # a path below --data, which is pinned by its content, or a name that the program knows
    model: str | None = None
    display: Display = Display()  # how reports show its scores
    # it needs no references; this machine's file of scorers must say so too
    reference_free: bool = unstated(False)
    title: ClassVar[str] = "a scorer of this machine"
    metrics: ClassVar[Mapping[str, str]] = {
        "command": "mean of the segments' scores, bootstrap interval over segments; detail.signature"
    }

    def describe(self) -> str:
        return self.display.title or self.name()

    def name(self) -> str:
        return self.scorer if self.model is None else f"{self.scorer}-{_short(self.model)}"

    def checkpoint(self) -> str | None:
        return self.model

    @property
    def needs_references(self) -> bool:
        return not self.reference_free

    def scorer_pins(self) -> ScorerPins | None:
        scorer = find_scorer(self.scorer, with_model=self.model is not None)
        if self.reference_free and not scorer.reference_free:
            found = f"{self.scorer} as a scorer that needs no references"
            allowed = "`reference_free: true` in this machine's file of scorers, if that is so"
            raise UnknownScorer(found, allowed)
        return scorer.pins()

    def of_step(self) -> Metric:
        return self.model_copy(update={"display": Display()})

    def column(self, signature: str = "") -> Column:
        shown = self.display
        return replace(super().column(signature), digits=shown.digits, better=shown.better)


def _short(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2]


class OfWords(Metric):
    """Metrics of single words.

    They are computed for each language of a test set, and averaged (Peters and Martins 2021, sections 4.1 and
    4.2).
    """

    title: ClassVar[str]
    worker: ClassVar[str] = "creamtea_workers.metrics.words"
    digits: ClassVar[int] = 2
    by_group: ClassVar[bool] = True

    def describe(self) -> str:
        return self.title

    def name(self) -> str:
        return self.kind


class Wer(OfWords):
    """Word error rate: share of words that differ from their reference."""

    kind: Literal["wer"]
    title: ClassVar[str] = "WER"
    better: ClassVar[str] = "lower"
    metrics: ClassVar[Mapping[str, str]] = {"wer": f"0 to 100, {MEAN_OF_GROUPS}"}


class Per(OfWords):
    """Phone error rate: Levenshtein distances in tokens, relative to the references' tokens.

    Both are summed first. Tokens are separated by blanks.
    """

    kind: Literal["per"]
    title: ClassVar[str] = "PER"
    better: ClassVar[str] = "lower"
    metrics: ClassVar[Mapping[str, str]] = {"per": f"in %, {MEAN_OF_GROUPS}"}


class Accuracy(OfWords):
    """Share of words that equal their reference."""

    kind: Literal["accuracy"]
    title: ClassVar[str] = "accuracy"
    metrics: ClassVar[Mapping[str, str]] = {"accuracy": f"0 to 100, {MEAN_OF_GROUPS}"}


class Levenshtein(OfWords):
    """Mean Levenshtein distance to the reference in characters."""

    kind: Literal["levenshtein"]
    title: ClassVar[str] = "Levenshtein distance"
    better: ClassVar[str] = "lower"
    metrics: ClassVar[Mapping[str, str]] = {"levenshtein": f"characters, {MEAN_OF_GROUPS}"}


METRICS: Family[Any] = Family("metric", Metric, "creamtea.methods.metrics", ("build",))


# ---------------------------------------------------------------- significance, recall and latency


class Significance(Strict):
    """Tests of differences from the baseline, both as in sacreBLEU.

    They are the paired bootstrap (Koehn 2004) and paired approximate randomisation (Riezler and Maxwell
    2005).
    """

    samples: Annotated[int, Field(ge=100, le=10**6)] = 1000  # [samples] of the bootstrap
    trials: Annotated[int, Field(ge=100, le=10**7)] = 10000  # [trials] of the randomisation
    seed: Seed = 12345  # random seed of both


class Recall(Strict):
    """The sweep of the recall-against-size plot (NVS paper, Figure 3)."""

    # [subwords] of the lexicon per source subword: points of its curve
    k: list[Positive] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    # points of the curve of NVS
    thresholds: list[BelowOne] = [0.99, 0.9, 0.5, 0.1, 0.01, 0.001, 0.0001, 0.00001, 0.000001]
    # [segments] of similar length that share the union of their selections, as in toolkits that select per
    # batch: gives an additional curve each
    batch: Annotated[int | None, Field(ge=2, le=10**4)] = unstated(None)


class LatencyProtocol(Strict):
    """How a latency run measures."""

    # [segments] timed, evenly spaced over the test set in order of length; a multiple of `batch_size`
    sentences: Positive = 20
    repetitions: Annotated[int, Field(ge=2, le=10**4)] = 30  # timings of each segment; all are kept
    warmup: Annotated[int, Field(ge=0, le=10**6)] = 3  # [batches] per system before the clock starts
    threads: Count = 1  # [threads] of the processor
    # [segments] of similar length at a time; 1 measures what a person waits for, more the load of a server
    batch_size: Positive = unstated(1)


class Latency(LatencyProtocol):
    """Latency of systems, interleaved in one process.

    Every system's time is also given as a percentage of each of `baselines`. Name the full vocabulary in fp32
    and in int8 there: a speed-up over fp32 alone may come from int8.
    """

    test_set: Name  # a test set of the study
    systems: list[Name] | None = None  # systems to time; none named: all
    baselines: list[Name] = []  # systems whose time is 100 %; none named: the study's baseline

    def protocol(self) -> LatencyProtocol:
        names = LatencyProtocol.model_fields
        return LatencyProtocol.model_validate({name: getattr(self, name) for name in names})
