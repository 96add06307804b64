"""Metrics of translations against references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from creamtea.contract.columns import Column
from creamtea.document.values import Positive
from creamtea.methods.family import Family, Method


class Metric(Method):
    """A corpus-level score on the scale that the metric's authors print."""

    digits: ClassVar[int] = 1  # of a score, in every table and figure
    better: ClassVar[str] = "higher"
    counts_length: ClassVar[bool] = False  # it also leaves `length_ratio`
    # what systems are compared on: their outputs, or the segment scores of their score steps, so that a
    # neural metric does not run twice
    compares: ClassVar[Literal["outputs", "segment scores"]] = "outputs"

    def describe(self) -> str:
        """The metric's title: "chrF++"."""
        raise NotImplementedError(f"{type(self).__name__} does not describe itself")

    def name(self) -> str:
        """Its name in places and tables: the kind and what is not its default ("bleu-intl")."""
        raise NotImplementedError(f"{type(self).__name__} does not name itself")

    def row(self) -> str:
        """The name of the score step's metric row."""
        return self.kind

    def checkpoint(self) -> str | None:
        """The path or name of its model, which the key pins by content where it is a file under --data."""
        return None

    def column(self, signature: str = "") -> Column:
        return Column(self.name(), self.describe(), self.digits, self.better, signature=signature)


LENGTH_RATIO = "hypothesis over reference tokens, as the metric's tokenizer counts them"


class Bleu(Metric):
    """BLEU (Papineni et al. 2002) as sacreBLEU computes it (Post 2018)."""

    kind: Literal["bleu"]
    tokenize: Literal["13a", "intl", "char", "none", "ja-mecab", "zh", "spm"] = "13a"
    title: ClassVar[str] = "BLEU"
    worker: ClassVar[str] = "creamtea_workers.metrics.bleu"
    counts_length: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, str]] = {
        "bleu": "0 to 100, bootstrap interval over segments; detail.signature",
        "length_ratio": LENGTH_RATIO,
    }

    def describe(self) -> str:
        return "BLEU" if self.tokenize == "13a" else f"BLEU ({self.tokenize})"

    def name(self) -> str:
        return "bleu" if self.tokenize == "13a" else f"bleu-{self.tokenize}"


class Chrf(Metric):
    """chrF, or chrF++ with words (Popović 2015, 2017), as sacreBLEU computes it."""

    kind: Literal["chrf"]
    word_order: Annotated[int, Field(ge=0, le=2)] = 0
    title: ClassVar[str] = "chrF"
    worker: ClassVar[str] = "creamtea_workers.metrics.chrf"
    metrics: ClassVar[Mapping[str, str]] = {
        "chrf": "0 to 100, bootstrap interval over segments; detail.signature"
    }

    def describe(self) -> str:
        return "chrF" + "+" * self.word_order

    def name(self) -> str:
        return "chrf" + "+" * self.word_order


DEFAULT_COMET = "Unbabel/wmt22-comet-da"


class Comet(Metric):
    """COMET in its own environment. `model` is a model name or a local checkpoint path."""

    kind: Literal["comet"]
    model: str = DEFAULT_COMET
    batch_size: Positive = 16
    title: ClassVar[str] = "COMET"
    worker: ClassVar[str] = "creamtea_workers.metrics.comet"
    digits: ClassVar[int] = 4
    compares: ClassVar[Literal["outputs", "segment scores"]] = "segment scores"
    metrics: ClassVar[Mapping[str, str]] = {
        "comet": "as the model scales it, bootstrap interval over segments; detail.signature"
    }

    def describe(self) -> str:
        return "COMET" if self.model == DEFAULT_COMET else f"COMET ({self._short_model()})"

    def name(self) -> str:
        return "comet" if self.model == DEFAULT_COMET else f"comet-{self._short_model()}"

    def checkpoint(self) -> str | None:
        return self.model

    def _short_model(self) -> str:
        return self.model.rstrip("/").rpartition("/")[2]


METRICS: Family[Any] = Family("metric", Metric, "creamtea.methods.metrics", ("build",))
