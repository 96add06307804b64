"""A study as its plan makes it, with figures filled in by hand instead of run; bench/ fills it, too."""

from collections.abc import Callable
from typing import Any

import analysis_rows
from analysis_rows import row
from planned_studies import Result, planned_study

from creamtea.report.model import Document
from creamtea.store.database import Database
from creamtea.store.tables import Hypothesis, Segment, SegmentScore
from creamtea.study.plan import PlannedNode

Spec = dict[str, Any]
Build = Callable[..., Document]  # the fixture `build`
SPEC: Spec = {
    "name": "teatime",
    "description": "Jam or cream first?",
    "languages": {"source": "en", "target": "de"},
    "corpora": {"toy": {"kind": "synthetic"}},
    "subwords": {"bpe": {}},
    "variants": {
        "softmax": {"corpus": "toy", "subwords": "bpe", "objective": {"kind": "softmax"}, "nvs": {}},
        "scones": {
            "corpus": "toy",
            "subwords": "bpe",
            "objective": {"kind": "scones", "alpha": 0.5},
            "seeds": [1, 2, 3],
        },
    },
    "systems": {
        "softmax-greedy": {"variant": "softmax"},
        "softmax-lexicon": {"variant": "softmax", "selection": {"kind": "lexicon", "k": 20}},
        "softmax-nvs": {"variant": "softmax", "selection": {"kind": "nvs", "threshold": 0.5}},
        "scones-greedy": {"variant": "scones", "precision": "bf16"},
    },
    "test_sets": {"test": {"kind": "synthetic", "corpus": "toy", "lines": 4}},
    "baseline": "softmax-greedy",
    "metrics": [{"kind": "bleu"}, {"kind": "chrf"}, {"kind": "comet"}],
    "latency": {"test_set": "test", "systems": ["softmax-greedy", "softmax-lexicon", "softmax-nvs"]},
}
SYSTEMS = tuple(SPEC["systems"])
BLEU_SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


def bleu(system: str, seed: int) -> float:
    return 30.0 + SYSTEMS.index(system) + 0.5 * seed


def metrics_of(node: PlannedNode) -> list[dict[str, Any]]:
    """What each kind of step would have measured."""
    labels = node.labels
    match node.node.split("/")[0]:
        case "corpus":
            pairs = {"train_read": 12000, "train_kept": 11950, "dev_read": 300, "dev_kept": 300}
            dropped = {"empty": 0, "too_long": 10, "ratio": 0, "duplicate": 40}
            return [
                *(row("pairs", count, subject) for subject, count in pairs.items()),
                *(row("dropped", count, subject) for subject, count in dropped.items()),
            ]
        case "test_set":
            return [row("segments", 400), row("idioms", 2)]
        case "train":
            values = {"dev_loss": 1.25, "dev_bleu": 31.0, "updates": 2000, "tokens_per_second": 6300.5}
            return [
                row(name, value) for name, value in (values | {"parameters": 1.9e6, "left_out": 0}).items()
            ]
        case "decode":
            size = {"softmax-lexicon": 210.5, "softmax-nvs": 150.25}.get(labels.get("system"), 4000.0)
            return [row("selected_size", size), row("empty", 0.25), row("truncated", 0.0)]
        case "score" if labels["metric"] == "bleu":
            value = bleu(labels["system"], labels["seed"])
            detail = {"signature": BLEU_SIGNATURE}
            return [
                row("bleu", value, low=value - 1.5, high=value + 1.75, detail=detail),
                row("length_ratio", 0.987),
            ]
        case "score" if labels["metric"] == "chrf":
            return [row("chrf", 55.0, low=54.0, high=56.0, detail={"signature": "nc:6"})]
        case "score":
            return [row("comet", 0.8125, low=0.8, high=0.825, detail={"signature": "model:tiny"})]
        case "compare":
            p, q = {
                "softmax-lexicon": (0.2, 0.3),
                "softmax-nvs": (0.01, 0.008),
                "scones-greedy": (0.02, 0.0002),
            }[labels["system"]]
            detail = {"p_two_sided": p, "p_value": p / 2, "p_randomization": q, "signature": BLEU_SIGNATURE}
            delta = -1.0 if labels["system"] == "softmax-lexicon" else 2.0
            return [row("delta", delta, labels["metric"], low=delta - 1, high=delta + 1, detail=detail)]
        case "pairs":
            means = {"softmax-greedy": 30.5, "softmax-lexicon": 31.5, "softmax-nvs": 32.5}
            of_all = [means.get(name, 34.0) for name in labels["systems"]]
            places = range(len(of_all))
            return [pair_row(i, j, of_all[j] - of_all[i]) for j in places for i in range(j)]
        case "recall":
            idiom = {"softmax-lexicon": 0.6, "softmax-nvs": 0.9}[labels["system"]]
            bounds = {"low": round(idiom - 0.05, 2), "high": round(idiom + 0.04, 2)}
            return [row("recall", idiom, "idiom", **bounds), row("recall", 0.95, "sentence")]
        case "latency":
            return [
                one
                for name, extra in (("latency_p50", 0.0), ("latency_p90", 6.0), ("latency_p99", 9.0))
                for one in latency_rows(name, [10.0 * (3 - position) + extra for position in range(3)])
            ]
    return analysis_rows.metrics_of(node) if "analysis" in labels else []


def pair_row(first: int, second: int, delta: float) -> dict[str, Any]:
    """Significant from two points on."""
    p = 0.001 if abs(delta) >= 2 else 0.3
    detail = {"p_two_sided": p, "p_value": p / 2, "p_randomization": p}
    return row("delta", delta, f"{first}/{second}", low=delta - 1, high=delta + 1, detail=detail)


def latency_rows(name: str, times: list[float]) -> list[dict[str, Any]]:
    """A system a position, in milliseconds, each with its percentages of all."""
    rows = []
    for position, time in enumerate(times):
        shares = [100 * time / other for other in times]
        percents = [{"value": share, "low": share - 2, "high": share + 3} for share in shares]
        detail = {"hardware": "a CPU", "percent_of": percents}
        rows.append(row(name, time, str(position), low=time - 0.5, high=time + 1, detail=detail))
    return rows


def points_of(node: PlannedNode) -> list[dict[str, Any]]:
    match node.node.split("/")[0]:
        case "train":
            return [
                {"series": series, "position": step, "x": 100.0 * (step + 1), "y": start / (step + 1)}
                for series, start in (("train_loss", 5.0), ("dev_loss", 4.0), ("dev_bleu", 10.0))
                for step in range(3)
            ]
        case "recall":
            names = ("k=1", "k=20") if node.labels["system"] == "softmax-lexicon" else ("threshold=0.9",)
            return [
                {"series": series, "position": at, "x": 50.0 * (at + 1), "y": 0.5 + 0.1 * at, "label": name}
                for series in ("recall_sentence", "recall_idiom", "recall_batch")
                for at, name in enumerate(names)
            ]
    return analysis_rows.points_of(node)


Change = dict[str, Any]  # columns of StepRow, and "metrics" to replace the step's


def fill_study(
    database: Database,
    spec: dict[str, Any] | None = None,
    changes: dict[str, Change] | None = None,
    **study: Any,
) -> int:
    """Write a planned study; `changes` are given by node name or its beginning. Returns its number."""

    def result(node: PlannedNode) -> Result:
        change: Change = {}
        for place, wanted in (changes or {}).items():
            if node.node.startswith(place):
                change |= wanted
        metrics = change.pop("metrics") if "metrics" in change else metrics_of(node)
        if node.node.startswith("train/"):
            change = {"facts": {"device": "cpu", "threads": 2, "training_seconds": 318.25}, **change}
        return Result(change, metrics, points_of(node), texts_of(node))

    return planned_study(database, spec or SPEC, result, **study)


SOURCES = ["a cup of tea", "over the moon", "jam first", "cream FIRST"]
REFERENCES = ["eine Tasse Tee", "überglücklich", "Marmelade zuerst", "Rahm zuerst"]


def texts_of(node: PlannedNode) -> list[Any]:
    key = node.key
    kind, system = node.node.split("/")[0], node.labels.get("system", "")
    if kind == "test_set":
        idiom = [{"name": "moon", "source": [0, 13], "target": [0, 13]}]
        return [
            Segment(step_key=key, index=i, source=s, reference=r, idioms=idiom if "moon" in s else [])
            for i, (s, r) in enumerate(zip(SOURCES, REFERENCES, strict=True))
        ]
    if kind == "decode":
        texts = list(REFERENCES)
        texts[1] = "über dem Mond" if system == "softmax-lexicon" else texts[1]
        texts[3] = "" if system == "scones-greedy" else texts[3]
        return [
            Hypothesis(step_key=key, index=i, text=t, score=-1.0 - i, length=len(t.split()), selected_size=9)
            for i, t in enumerate(texts)
        ]
    if kind == "score":
        return [SegmentScore(step_key=key, index=i, value=10.0 * i) for i in range(4)]
    return []
