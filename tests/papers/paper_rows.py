"""A store with studies of the papers, filled with small rows as their steps would leave them."""

import zlib
from pathlib import Path
from typing import Any

import analysis_rows
from analysis_rows import row
from planned_studies import Result, planned_study
from teatime_study import latency_rows

from creamtea.methods.analysis import ANALYSES, Analysis
from creamtea.papers.catalogue import Member, papers
from creamtea.store.database import Database
from creamtea.study.loader import load_study
from creamtea.study.plan import PlannedNode
from creamtea.study.spec import Study

ROOT = Path(__file__).resolve().parents[2]
# the first study of each collection (the others differ in their languages), and one with another metric;
# those on GPUs are the same in another precision
_FIRST = tuple(
    next(iter(collection.members.values())).name
    for paper in papers().values()
    for name, collection in paper.collections.items()
    if not name.endswith("-gpu")
)
ENOUGH = (*_FIRST, "entmax-kftt-en-ja", "nvs-wmt20-en-de-gpu")
# of Figure 1 of the NVS paper, and one like those of Figure 5
IDIOMS = [
    {"source": source, "target": "Katze", "subwords": ["▁kat", "ze"], "missed": ["▁kat"]}
    for source in (
        "to swallow the bitter pill",
        "by hook or crook",
        "to buy a pig in a poke",
        "to sweat blood",
        "make yourself at home!",
    )
]
IN_CONTEXT = {"segment": 0, "source": "rain or shine", "target": "Wetter", "only_in_context": ["▁Wetter"]}
OURS = ("scones-multi30k", "ibm3-temperature", "entmax-multi30k", "nvs-idioms", "nvs-weights")


def share(name: str, value: float, subject: object = "") -> dict[str, Any]:
    return row(name, value, subject, low=value - 0.02, high=value + 0.02)


def gain(labels: dict[str, Any]) -> float:
    """A few points more or less for each system or variant, the same in every run."""
    name = labels.get("system") or labels.get("variant") or ""
    return (zlib.crc32(name.encode()) % 50) / 10.0


def metrics_of(node: PlannedNode, spec: Study) -> list[dict[str, Any]]:
    labels = node.labels
    match node.node.split("/")[0]:
        case "corpus":
            return [row("pairs", 30_000.0, name) for name in ("train_read", "train_kept")]
        case "test_set":
            return [row("segments", 100), row("idioms", 20)]
        case "train":
            return [row("parameters", 60.6e6), row("updates", 1000)]
        case "decode":
            return [row("selected_size", 900.0), row("empty", 0.01)]
        case "recall":
            listed = {"missed": {"count": len(IDIOMS), "of": 9, "idioms": IDIOMS}}
            words = {**share("recall", 0.5, "idiom_words"), "detail": listed}
            return [share("recall", 0.6, "idiom"), share("recall", 0.9, "sentence"), words]
        case "score":
            scale = 0.01 if labels["metric"] == "comet" else 1.0
            value = scale * (30.0 + gain(labels))
            bounds = {"low": value - scale, "high": value + scale}
            extra = [row("length_ratio", 0.98)] if labels["metric"] == "bleu" else []
            metric = next(metric for metric in spec.metrics if metric.name() == labels["metric"])
            return [row(metric.row(), value, detail={"signature": "s"}, **bounds), *extra]
        case "compare":
            delta = gain(labels) - gain({"system": labels["baseline"]})
            p = 0.0001 if abs(delta) > 2 else 0.6
            detail = {"p_two_sided": p, "p_value": p / 2, "p_randomization": p}
            return [row("delta", delta, labels["metric"], low=delta - 1, high=delta + 1, detail=detail)]
        case "latency":
            names = ("latency_p50", "latency_p90", "latency_p99", "sentences_per_second")
            times = [100.0 - place for place in range(len(labels["systems"]))]
            return [found for name in names for found in latency_rows(name, times)]
    return analysis_of(node, spec) if "analysis" in labels else []


def differences_of(analysis: Analysis) -> list[dict[str, Any]]:
    """Of each measure at each setting that is compared."""
    detail = {"p_two_sided": 0.0005, "p_value": 0.0005}
    subjects = {
        "/".join(filter(None, (measure.column.key, measure.subject(setting))))
        for table in analysis.tables
        for setting in table.settings(analysis)
        for measure in table.measures
        if measure.column.key in analysis.paired
    }
    return [row("delta", 0.1, subject, low=0.05, high=0.15, detail=detail) for subject in sorted(subjects)]


def analysis_of(node: PlannedNode, spec: Study) -> list[dict[str, Any]]:
    """Every metric that the analysis declares, at each setting of its tables."""
    kind, analysis = node.node.split("/")[0], spec.analyses[node.labels["analysis"]]
    if kind == "differences":
        return differences_of(analysis)
    if kind not in ANALYSES.kinds:
        return []
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for table in analysis.tables:
        for setting in table.settings(analysis):
            for measure in table.measures:
                if any(part in measure.undefined for part in setting.parts):
                    continue
                subject = measure.subject(setting)
                value = 20.0 + gain(node.labels) if measure.name == "bleu" else 0.2 + gain(node.labels) / 10
                bounds = {"low": 0.95 * value, "high": 1.05 * value}
                detail: dict[str, Any] = {"deviation": value / 2, "count": 30, "of": 100, "output_empty": 10}
                detail["only_in_context"] = {"count": 1, "of": 9, "idioms": [IN_CONTEXT]}
                metric = row(measure.name, value, subject, detail=detail, **bounds)
                found[measure.name, subject] = metric
    return list(found.values())


def members() -> dict[str, tuple[str, Member]]:
    """The file and the member of the papers' studies, by name."""
    return {
        member.name: (collection.file, member)
        for paper in papers().values()
        for collection in paper.collections.values()
        for member in collection.members.values()
    }


def fill(database: Database, *names: str) -> None:
    """Write the studies of these names as if they had run."""
    for file, member in map(members().__getitem__, names):
        loaded = load_study(ROOT / file, member.overrides)

        def result(node: PlannedNode, spec: Study = loaded.study) -> Result:
            points = analysis_rows.points_of(node) if "analysis" in node.labels else []
            return Result({}, metrics_of(node, spec), points)

        planned_study(database, loaded.spec, result)
