"""A study as if it had run: its plan, outputs and figures filled in by hand."""

import random
from typing import Any

import analysis_rows
import teatime_study
from planned_studies import Result, planned_study
from teatime_study import latency_rows, pair_row, row

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
DIFFERENCES = [0, -1.9, -0.2, 1.6]  # of the four systems from the baseline, the first, in every metric
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
    labels = node.labels
    at = systems.index(labels["system"]) if "system" in labels else 0
    match node.node.split("/")[0]:
        case "decode":
            size = [4000.0, 212.4, 148.8, 4000.0][at]
            return [row("selected_size", size), row("empty", 0.0), row("truncated", 0.0)]
        case "score":
            metric = {"bleu": 31.4, "chrf": 56.2, "chrf++": 53.1}[labels["metric"]]
            value = metric + DIFFERENCES[at] + labels["seed"] / 10
            detail = {"signature": f"{labels['metric']}|version:2.6.0"}
            extra = [row("length_ratio", 0.987)] if labels["metric"] == "bleu" else []
            return [row(labels["metric"], value, low=value - 1.4, high=value + 1.5, detail=detail), *extra]
        case "compare":
            p, delta = [1, 0.001, 0.61, 0.004][at], DIFFERENCES[at]
            detail = {"p_two_sided": p, "p_value": p / 2, "p_randomization": p * 1.25}
            return [row("delta", delta, labels["metric"], low=delta - 1, high=delta + 1, detail=detail)]
        case "pairs":
            of_all = [DIFFERENCES[systems.index(name)] for name in labels["systems"]]
            places = range(len(of_all))
            return [pair_row(i, j, of_all[j] - of_all[i]) for j in places for i in range(j)]
        case "recall":
            of_idioms = [0, 0.61, 0.93, 0][at]
            values = {"idiom_words": of_idioms, "idiom": of_idioms + 0.02, "sentence": 0.97}
            return [row("recall", value, subject) for subject, value in values.items()]
        case "latency":
            return [
                one
                for name, factor in (("latency_p50", 1.0), ("latency_p90", 1.4), ("latency_p99", 1.6))
                for one in latency_rows(name, [time * factor for time in (20.0, 13.0, 15.0, 19.0)])
            ]
    return teatime_study.metrics_of(node)


def points_of(node: PlannedNode) -> list[dict[str, Any]]:
    if not node.node.startswith("recall/"):
        return teatime_study.points_of(node)
    lexicon = "lexicon" in node.labels["system"]
    of_lexicon = [(20, 0.3), (60, 0.5), (210, 0.62), (600, 0.8)]
    values = of_lexicon if lexicon else [(30, 0.6), (90, 0.86), (150, 0.93)]
    return [
        {"series": series, "position": i, "x": float(x), "y": min(1.0, y + gain), "label": f"no. {i}"}
        for series, gain in (("recall_idiom_words", 0.0), ("recall_sentence", 0.15))
        for i, (x, y) in enumerate(values)
    ]


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
