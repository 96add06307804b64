"""Metrics: their names, each once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from creamtea.document.mistakes import Mistake
from creamtea.study.checks.reading import parsed
from creamtea.study.spec import Metric


def metric_name(metric: Metric) -> str:
    """bleu, bleu-intl, chrf, chrf++, comet …: the kind and what is not its default."""
    match metric.kind:
        case "bleu":
            return "bleu" if metric.tokenize == "13a" else f"bleu-{metric.tokenize}"
        case "chrf":
            return "chrf" + "+" * metric.word_order
        case "comet":
            model = metric.model.rstrip("/").rpartition("/")[2]
            return "comet" if metric.model == type(metric).model_fields["model"].default else f"comet-{model}"


def check_metrics(data: dict[str, Any]) -> Iterator[Mistake]:
    metrics = data.get("metrics")
    seen: dict[str, int] = {}
    for index, value in enumerate(metrics if isinstance(metrics, list) else []):
        metric: Metric | None = parsed(Metric, value)
        if metric is None:
            continue
        name = metric_name(metric)
        if name in seen:
            found = f"{name} a second time (first: metrics[{seen[name]}])"
            yield Mistake(("metrics", index), found, "each metric once")
        seen.setdefault(name, index)
