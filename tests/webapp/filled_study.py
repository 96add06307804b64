"""A study as if it had run: its plan, outputs and figures filled in by hand."""

import random
from typing import Any

import analysis_rows
from planned_studies import Result, planned_study

from creamtea.store.database import Database
from creamtea.store.tables import Hypothesis, Segment, SegmentScore
from creamtea.study.plan import PlannedNode

SPEC: dict[str, Any] = {
    "name": "quagga",
    "description": "Jam or <b>cream</b> first?",
    "languages": {"source": "en", "target": "de"},
    "corpora": {"okapi": {"kind": "synthetic"}},
    "subwords": {"bpe": {}},
    "variants": {
        "tapir": {"corpus": "okapi", "subwords": "bpe", "objective": {"kind": "softmax"}, "nvs": {}},
        "dugong": {
            "corpus": "okapi",
            "subwords": "bpe",
            "objective": {"kind": "scones", "alpha": 0.5},
            "seeds": [1, 2],
        },
    },
    "systems": {
        "tapir-greedy": {"variant": "tapir"},
        "tapir-lexicon": {"variant": "tapir", "selection": {"kind": "lexicon", "k": 20}},
        "tapir-nvs": {"variant": "tapir", "selection": {"kind": "nvs", "threshold": 0.5}},
        "dugong-greedy": {"variant": "dugong"},
    },
    "test_sets": {"narwhal": {"kind": "synthetic", "corpus": "okapi", "lines": 40}},
    "baseline": "tapir-greedy",
    "metrics": [{"kind": "bleu"}, {"kind": "chrf"}, {"kind": "comet"}],
    "latency": {"test_set": "narwhal"},
}
# of a campaign of two of its systems
QUAGGA: dict[str, Any] = {"study": "quagga", "test_set": "narwhal", "systems": ["tapir-greedy", "tapir-nvs"]}
# a study with analyses, two lexica and two baselines of its latency
ANALYSED: dict[str, Any] = SPEC | {
    "name": "quokka",
    "systems": {
        "tapir-greedy": {"variant": "tapir"},
        "tapir-lexicon+k=20": {"variant": "tapir", "selection": {"kind": "lexicon", "k": 20}},
        "tapir-lexicon+k=200": {"variant": "tapir", "selection": {"kind": "lexicon", "k": 200}},
        "dugong-greedy": {"variant": "dugong"},
    },
    "latency": {"test_set": "narwhal", "baselines": ["tapir-greedy", "dugong-greedy"]},
    "analyses": analysis_rows.analyses("narwhal"),
}
NO_MODEL = "no COMET model: Unbabel/wmt22-comet-da <img src=x>"

HOSTILE = [  # source, and the outputs of the four systems
    (
        "<script>document.title='owned'</script>",
        ["<b>fett</b>", "&lt;b&gt;", "<img src=x onerror=x>", "</div>"],
    ),
    ("$x^2$ and *a* :material/home:", ["$x$ kostet $5$", "*a* **b**", "# kein Titel", "[a](http://b)"]),
    ("مرحبا بالعالم", ["مرحبا", "שלום עולם", "abc مرحبا 123", "x"]),
    ("你好，世界", ["你好", "世界", "", "   "]),
]


def lines(count: int, seed: int = 3) -> list[tuple[str, list[str]]]:
    """Sources and four outputs; some outputs are equal."""
    draw = random.Random(seed)
    subjects = [("the baker", "der Bäcker"), ("my neighbour", "meine Nachbarin"), ("the dog", "der Hund")]
    verbs = [("finds", "findet"), ("buys", "kauft"), ("forgets", "vergisst")]
    things = [
        ("a red cup", "eine rote Tasse"),
        ("the warm bread", "das warme Brot"),
        ("two keys", "zwei Schlüssel"),
    ]
    made = []
    for _ in range(count):
        (s, s_), (v, v_), (t, t_) = (draw.choice(words) for words in (subjects, verbs, things))
        good = f"{s_} {v_} {t_} ."
        worse = [f"{s_} {t_} .", f"{s_} {v_} die Tasse .", f"{v_} {s_} {t_} ?", good]
        made.append((f"{s} {v} {t} .", [good, *draw.sample(worse, 3)]))
    return made


def metrics_of(node: PlannedNode, systems: list[str]) -> list[dict[str, Any]]:
    def row(name: str, value: float, subject: str = "", **more: Any) -> dict[str, Any]:
        return {"name": name, "subject": subject, "value": value, "detail": {}, **more}

    labels = node.labels
    at = systems.index(labels["system"]) if "system" in labels else 0
    match node.node.split("/")[0]:
        case "corpus":
            pairs = {"train_read": 12000, "train_kept": 11950, "dev_read": 300, "dev_kept": 300}
            return [row("pairs", n, s) for s, n in pairs.items()] + [row("dropped", 50, "duplicate")]
        case "test_set":
            return [row("segments", 40), row("idioms", 12)]
        case "train":
            return [
                row("dev_loss", 1.25),
                row("dev_bleu", 31.0),
                row("updates", 2000),
                row("parameters", 1.9e6),
            ]
        case "decode":
            size = [4000.0, 212.4, 148.8, 4000.0][at]
            return [row("selected_size", size), row("empty", 0.0), row("truncated", 0.0)]
        case "score":
            value = (
                {"bleu": 31.4, "chrf": 56.2, "chrf++": 53.1}[labels["metric"]]
                + [0, -1.9, -0.2, 1.6][at]
                + labels["seed"] / 10
            )
            detail = {"signature": f"{labels['metric']}|version:2.6.0"}
            extra = [row("length_ratio", 0.987)] if labels["metric"] == "bleu" else []
            return [row(labels["metric"], value, low=value - 1.4, high=value + 1.5, detail=detail), *extra]
        case "compare":
            p, delta = [(1, 0), (0.001, -1.9), (0.61, -0.2), (0.004, 1.6)][at]
            detail = {"p_two_sided": p, "p_value": p / 2, "p_randomization": p * 1.25}
            return [row("delta", delta, labels["metric"], low=delta - 1, high=delta + 1, detail=detail)]
        case "pairs":
            of_all = [0.0, -1.9, -0.2, 1.6]
            places = [systems.index(name) for name in labels["systems"]]
            tests = {"p_two_sided": 0.001, "p_value": 0.0005, "p_randomization": 0.002}
            return [
                row("delta", delta, f"{i}/{j}", low=delta - 1, high=delta + 1, detail=tests)
                for j, system in enumerate(places)
                for i, other in enumerate(places[:j])
                for delta in [of_all[system] - of_all[other]]
            ]
        case "recall":
            of_idioms = [0, 0.61, 0.93, 0][at]
            return [
                row("recall", of_idioms, "idiom_words"),
                row("recall", of_idioms + 0.02, "idiom"),
                row("recall", 0.97, "sentence"),
            ]
        case "latency":
            times = [20.0, 13.0, 15.0, 19.0]

            def detail_of(time: float) -> dict[str, Any]:
                shares = [100 * time / other for other in times]
                percents = [{"value": one, "low": one - 2, "high": one + 3} for one in shares]
                return {"hardware": "a CPU", "percent_of": percents}

            return [
                row(name, time * factor, str(i), detail=detail_of(time))
                for i, time in enumerate(times)
                for name, factor in (("latency_p50", 1.0), ("latency_p90", 1.4), ("latency_p99", 1.6))
            ]
    return analysis_rows.metrics_of(node) if "analysis" in labels else []


def points_of(node: PlannedNode) -> list[dict[str, Any]]:
    match node.node.split("/")[0]:
        case "train":
            return [
                {"series": series, "position": i, "x": 100.0 * (i + 1), "y": scale * (1.1 + 3 / (i + 1))}
                for series, scale in (("train_loss", 1.0), ("dev_loss", 1.1), ("dev_bleu", 8.0))
                for i in range(12)
            ]
        case "recall":
            lexicon = "lexicon" in node.labels["system"]
            values = (
                [(20, 0.3), (60, 0.5), (210, 0.62), (600, 0.8)]
                if lexicon
                else [(30, 0.6), (90, 0.86), (150, 0.93)]
            )
            return [
                {"series": series, "position": i, "x": float(x), "y": min(1.0, y + gain), "label": f"no. {i}"}
                for series, gain in (("recall_idiom_words", 0.0), ("recall_sentence", 0.15))
                for i, (x, y) in enumerate(values)
            ]
    return analysis_rows.points_of(node)


def texts_of(node: PlannedNode, texts: list[tuple[str, list[str]]], systems: list[str]) -> list[Any]:
    if "analysis" in node.labels:
        return []
    key = node.key
    kind = node.node.split("/")[0]
    if kind == "test_set":
        idiom = [{"name": "first word", "source": [0, 3], "target": [0, 3]}]
        return [
            Segment(
                step_key=key, index=i, source=source, reference=outputs[0], idioms=idiom if i > 35 else []
            )
            for i, (source, outputs) in enumerate(texts)
        ]
    if kind == "decode":
        at = systems.index(node.labels["system"])
        return [
            Hypothesis(step_key=key, index=i, text=outputs[at], score=-1.5, length=5, selected_size=99)
            for i, (_, outputs) in enumerate(texts)
        ]
    if kind == "score":
        at = systems.index(node.labels["system"])
        return [SegmentScore(step_key=key, index=i, value=50.0 + at * (i - 20)) for i in range(len(texts))]
    return []


def fill_study(
    database: Database, texts: list[tuple[str, list[str]]], document: dict[str, Any] = SPEC
) -> int:
    """Write the planned study as if it had run, but for COMET, whose model is missing."""
    systems = list(document["systems"])

    def result(node: PlannedNode) -> Result:
        if node.labels.get("metric") == "comet":
            return Result({"state": "failed", "error_kind": "unavailable", "error": NO_MODEL})
        facts = {"facts": {"device": "cpu", "threads": 2}} if node.node.startswith("train/") else {}
        return Result(facts, metrics_of(node, systems), points_of(node), texts_of(node, texts, systems))

    return planned_study(database, document, result, state="failed")
