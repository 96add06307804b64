"""Analysis `buckets`: scores of buckets of a test set, which group similar segments."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from creamtea.contract.step import Column, StepKind, StepParams
from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, repeated
from creamtea.document.values import Count, Name, Positive
from creamtea.methods.analysis import BLEU, Analysis, CellPlot, Measure, RowSetting, TableLayout
from creamtea.methods.metrics import Bleu, Chrf
from creamtea.methods.planning import Inputs, Planner
from creamtea.methods.texts import Languages

By = Literal["length", "reference_length", "rarest", "frequency", "idiom", "label"]
TITLES: dict[str, str] = {
    "length": "length of the source",
    "reference_length": "length of the reference",
    "rarest": "rarest word of the reference, in the training text",
    "frequency": "mean frequency of the reference's words in the training text",
    "idiom": "idioms",
    "label": "label",
}
OF_TRAINING_TEXT = frozenset(["rarest", "frequency"])
DEFAULT_BY: tuple[By, ...] = ("length", "rarest", "idiom", "label")
ALL = "all"  # the whole test set


class BucketsParams(StepParams):
    """Parameters of a step that scores buckets.

    `labels`: a file, pinned by `digests`. Only its first `limit` lines count, like the test set's.
    """

    by: list[By]
    lengths: list[int] | None
    count: int
    frequencies: list[int]
    min_segments: int
    bleu: Bleu
    chrf: Chrf
    languages: Languages
    labels: str | None
    digests: dict[str, str] | None
    limit: int | None


class Buckets(Analysis):
    """Scores of parts of a test set: short and long sentences, rare words, idioms, your own labels.

    A bucket's score comes from its segments' summed statistics, with a bootstrap interval over the segments.
    A hard bucket is hard for every system: compare systems within a bucket. Words are runs of letters and
    digits, whatever their case; in languages without blanks, single characters.
    """

    kind: Literal["buckets"]
    systems: list[Name] | None = None  # none given: all that translate the test set, except references
    # the divisions; none given: length, and rarest, idiom and label if they are known
    by: Annotated[list[By], Field(min_length=1)] | None = None
    count: Annotated[int, Field(ge=2, le=9)] = 3  # number of buckets of equal size, by length and frequency
    # [words] longest sentence of each bucket except the last, instead of buckets of equal size
    lengths: Annotated[list[Positive], Field(min_length=1, max_length=8)] | None = None
    # [occurrences] of the rarest word at which each bucket except the first begins
    frequencies: Annotated[list[Positive], Field(min_length=1, max_length=8)] = [1, 10, 100]
    corpus: Name | None = None  # corpus whose target side counts as training text; none given: the baseline's
    labels: str | None = None  # path of a text file with a label for each segment, line by line
    min_segments: Count = 20  # [segments] a smaller bucket has no score

    title: ClassVar[str] = "Buckets"
    rows: ClassVar[Literal["variant", "system"]] = "system"
    of_models: ClassVar[bool] = False
    step: ClassVar[StepKind[BucketsParams]] = StepKind(
        "buckets",
        2,
        "score buckets of a test set",
        BucketsParams,
        worker="creamtea_workers.steps.buckets",
        inputs={
            "test_set": "segments",
            "decode": "the system's translations",
            "corpus": "training text, with `rarest` or `frequency`",
        },
        metrics={
            "bleu": "subject: a bucket (`length/2`) or `all`; bootstrap interval over its segments; detail: "
            "bucket (kind, words, position, segments), signature; no value if there are too few segments",
            "chrf": "the same",
        },
        optional=True,
    )
    tables: ClassVar[tuple[TableLayout, ...]] = (
        TableLayout(
            "system",
            (Measure(BLEU), Measure(Column("chrf", "chrF", 1, "higher"))),
            lambda spec: [RowSetting((ALL,))],
            buckets=TITLES,
        ),
    )
    plots: ClassVar[tuple[CellPlot, ...]] = tuple(
        CellPlot(
            f"BLEU by {title}",
            Column("setting", title, 0),
            BLEU,
            {"bleu": ""},
            only=by,
            joined=by not in ("idiom", "label"),
        )
        for by, title in TITLES.items()
    )

    def plan(self, name: str, planner: Planner) -> None:
        test_set = planner.test_set(self.test_set)
        by = list(self.by or DEFAULT_BY)
        corpus = self.corpus or planner.training_corpus()
        inputs: Inputs = {"test_set": [test_set]}
        if corpus is not None and not OF_TRAINING_TEXT.isdisjoint(by):
            inputs["corpus"] = [planner.corpus(corpus)]
        digests, limit = None, None
        if self.labels is not None:
            place = ("analyses", name, "labels")
            digests, limit = planner.lines_of(self.test_set, (place, self.labels))
        settings = {key: getattr(self, key) for key in ("lengths", "count", "frequencies", "min_segments")}
        params = BucketsParams(
            by=by,
            **settings,
            bleu=planner.bleu,
            chrf=planner.chrf,
            languages=planner.languages,
            labels=self.labels,
            digests=digests,
            limit=limit,
        )
        paths = [] if self.labels is None else [self.labels]
        for labels, decode in planner.outputs(self.test_set):
            if self.systems is None or labels["system"] in self.systems:
                place_of = "/".join(
                    [name, labels["system"], *map(str, [labels["seed"]] if "seed" in labels else [])]
                )
                planner.add(
                    self.step,
                    place_of,
                    params,
                    {**inputs, "decode": [decode]},
                    {"analysis": name, **labels},
                    paths,
                )

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        yield from study.unknown_names((*path, "systems"), block.get("systems"), "systems")
        yield from study.unknown_key(path, block, "corpus", "corpora")
        for index, name in enumerate(_listed(block.get("systems"))):
            yield from _check_system((*path, "systems", index), name, block.get("test_set"), study)
        for key in ("lengths", "frequencies"):
            bounds = _listed(block.get(key))
            if all(isinstance(bound, int) for bound in bounds) and any(a >= b for a, b in pairwise(bounds)):
                found = f"{', '.join(map(str, bounds))}, which does not rise"
                yield Mistake((*path, key), found, "rising numbers")
        by = [kind for kind in _listed(block.get("by")) if isinstance(kind, str)]
        yield from repeated(by, (*path, "by"))
        if "label" in by and block.get("labels") is None:
            yield Mistake((*path, "by"), "label without labels", "`labels: FILE` beside it")
        if not OF_TRAINING_TEXT.isdisjoint(by) and not any(study.blocks("corpora")):
            found = f"{' and '.join(kind for kind in by if kind in OF_TRAINING_TEXT)} without training text"
            yield Mistake((*path, "by"), found, "a corpus in the study, or another division")


def _check_system(path: KeyPath, name: Any, test_set: Any, study: RawStudy) -> Iterator[Mistake]:
    system = study.named("systems", name) or {}
    if "reference" in system:
        found = f"{name}, a human reference, which has fewer references to be scored against"
        yield Mistake(path, found, "a system that translates")
        return
    translated = system.get("outputs", system.get("test_sets"))
    if isinstance(translated, dict | list) and isinstance(test_set, str) and test_set not in translated:
        yield Mistake(path, f"{name}, which does not translate {test_set}", "a system that does")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
