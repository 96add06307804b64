"""What the steps of analyses would have left: made up, but of the right names, shapes and size."""

import math
from typing import Any

from creamtea.study.plan import PlannedNode

Rows = list[dict[str, Any]]
WIDTHS = (1, 4, 32, 128)
KS = (10, 100, 1000)
BINS = 10


def analyses(test_set: str) -> dict[str, Any]:
    """One analysis of every kind, by its kind's name."""
    kinds: dict[str, dict[str, Any]] = {
        "beam_sizes": {"widths": list(WIDTHS)},
        "search_errors": {"widths": [1, 4], "sentences": 20},
        "empty_string": {},
        "depth_limited": {"lengths": [1, 2, 3]},
        "support_density": {},
        "calibration": {},
        "recall_at_size": {"k": list(KS)},
        "nvs_context": {"thresholds": [0.9, 0.99, 0.5]},
        "buckets": {},
    }
    return {kind: {"kind": kind, "test_set": test_set, **more} for kind, more in kinds.items()}


def row(name: str, value: float | None, subject: object = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "subject": str(subject), "value": value, "detail": {}, **more}


def share(name: str, value: float, subject: object = "") -> dict[str, Any]:
    return row(name, value, subject, low=max(0.0, value - 0.03), high=min(1.0, value + 0.04))


def metrics_of(node: PlannedNode) -> Rows:
    """Softmax suffers from wide beams, SCONES does not; every seed is a little better than the one before."""
    kind, labels = node.node.split("/")[0], node.labels
    curse = 0.3 if "scones" in labels["variant"] or "dugong" in labels["variant"] else 1.0
    gain = 0.1 * labels.get("seed", 0)
    match kind:
        case "beam_sizes":
            return [one for width in WIDTHS for one in _of_search(width, width, curse, gain)]
        case "search_errors":
            found = [share("search_errors", 0.4 * curse / width**0.5, width) for width in (1, 4)]
            found += [share("search_errors_at_least", 0.3 * curse / width**0.5, width) for width in (1, 4)]
            found += [one for width in (1, 4) for one in _of_search(width, width, curse, gain)]
            found += _of_search("exact", 1000, curse, gain)
            outcomes = {"proved": 0.9, "improved": 0.06, "limit": 0.04, "unproved": 0.1}
            found += [share(name, value) for name, value in outcomes.items()]
            means = {"best": -9.5, "empty": -9.5 - 6 / curse, "gap": 6 / curse}
            spread = {"best": 2.5, "empty": 4.0, "gap": 3.25}
            found += [
                row(f"log_prob_{name}", value, detail={"deviation": spread[name]})
                for name, value in means.items()
            ]
            return [*found, row("expansions", 812.5)]
        case "empty_string":
            preferred = share("empty_preferred", 0.22 * curse)
            preferred["detail"] = {"count": round(220 * curse), "of": 1000, "output_empty": round(20 * curse)}
            found = [preferred, share("empty_impossible", 0.0)]
            found.append(row("log_prob_gap", 4.25 / curse, detail={"deviation": 3.75}))
            return [*found, row("log_prob_output", -9.5), row("log_prob_empty", -9.5 - 4.25 / curse)]
        case "depth_limited":
            better = [share("shorter_better", 0.1 * curse * most, most) for most in (1, 2, 3)]
            return [*better, *(share("undecided", 0.01 * most, most) for most in (1, 2, 3))]
        case "support_density":
            found = [row("density", 1.0 if curse == 1 else 0.013), row("support_size", 4000 * curse)]
            return [*found, row("support_size_median", 3000 * curse)]
        case "calibration":
            return [row("ece", 0.08 * curse), row("accuracy", 0.61), row("confidence", 0.61 + 0.08 * curse)]
        case "recall_at_size":
            return [one for k in KS for one in _at_size(k)]
        case "nvs_context":
            return [one for threshold in (0.9, 0.99, 0.5) for one in _in_context(threshold)]
        case "buckets":
            return [one for name in ("bleu", "chrf") for one in of_buckets(name, curse, gain)]
        case "differences":
            return _differences("baseline" in labels)
    raise AssertionError(f"{kind} is no analysis")


OUTPUTS = ("bleu", "length_ratio", "empty")
ERRORS = ("search_errors", "search_errors_at_least")
LOG_PROBS = ("log_prob_gap", "log_prob_best", "log_prob_empty", "log_prob_output")
# what any analysis compares: measures and settings
COMPARED = dict.fromkeys(
    [
        *((name, str(width)) for width in WIDTHS for name in (*OUTPUTS, *ERRORS)),
        *((name, "exact") for name in OUTPUTS),
        *((f"{name}{end}", "") for name in LOG_PROBS for end in ("", "_deviation")),
        *((f"empty_{name}", "") for name in ("higher", "preferred", "impossible")),
        *((name, str(most)) for most in (1, 2, 3) for name in ("shorter_better", "undecided")),
        *((name, "") for name in ("unproved", "density", "support_size", "accuracy", "confidence")),
    ]
)


def _differences(from_baseline: bool) -> Rows:
    """The wider the beam, the larger and the surer the difference."""
    found = []
    for measure, setting in COMPARED:
        if not from_baseline and setting in ("", "4"):
            continue
        value = math.log2(int(setting)) / 10 if setting.isdigit() else 0.2
        detail = {"p_value": 0.001, "p_two_sided": round(0.2 - value / 4, 3), "segments": 20}
        subject = "/".join(filter(None, (measure, setting)))
        found.append(row("delta", value, subject, low=value - 0.3, high=value + 0.3) | {"detail": detail})
    return found


BUCKETS = {"length": ["1–5 words", "6–12 words"], "idiom": ["with an idiom", "without"]}


def of_buckets(name: str, curse: float, gain: float) -> Rows:
    found = [row(name, 30 - curse + gain, "all", low=28.0, high=33.0)]
    for kind, words in BUCKETS.items():
        for position, own in enumerate(words, start=1):
            bucket = {"kind": kind, "words": own, "position": position, "segments": 90 * position}
            value = 30 - 2 * position * curse + gain
            found.append(
                row(
                    name,
                    value,
                    f"{kind}/{position}",
                    low=value - 2,
                    high=value + 2,
                    detail={"bucket": bucket},
                )
            )
    return found


def _of_search(subject: object, width: int, curse: float, gain: float) -> Rows:
    loss = curse * math.log2(width) / 7
    bleu = 30.0 + 2 * min(1, math.log2(width)) - 6 * loss**2 + gain
    return [
        row("bleu", bleu, subject, low=bleu - 1.25, high=bleu + 1.25),
        row("length_ratio", 1.0 - 0.1 * loss, subject),
        share("empty", 0.02 * loss, subject),
    ]


def _at_size(k: int) -> Rows:
    size = round(12.0 * k**0.8, 2)
    found = [row("selected_size_lexicon", size, f"k={k}"), row("selected_size_nvs", size - 0.25, f"k={k}")]
    found.append(row("threshold", 1 / k, f"k={k}"))
    scopes = {"sentence": 0.8, "idiom_words": 0.3, "idiom_words_macro": 0.2, "idiom": 0.5, "idiom_macro": 0.4}
    for scope, base in scopes.items():
        lexicon, nvs = base + 0.05 * math.log10(k), base + 0.1 + 0.03 * math.log10(k)
        found += [
            share("recall_lexicon", lexicon, f"k={k}/{scope}"),
            share("recall_nvs", nvs, f"k={k}/{scope}"),
            share("recall_difference", nvs - lexicon, f"k={k}/{scope}"),
        ]
    return found


def _in_context(threshold: float) -> Rows:
    shares = {"sentence": 0.62, "word": 0.41, "only_sentence": 0.25, "only_word": 0.04}
    found = [
        share(name, value * part, f"{threshold:g}/{kind}")
        for name, part in (("all_selected", 1.0), ("all_words_selected", 0.8))
        for kind, value in shares.items()
    ]
    size = {0.9: 150.5, 0.99: 110.5, 0.5: 170.5}[threshold]
    return [*found, *(row("selected_size", size, f"{threshold:g}/{kind}") for kind in ("sentence", "word"))]


def points_of(node: PlannedNode) -> Rows:
    kind = node.node.split("/")[0]
    match kind:
        case "empty_string":
            series, points = "log_prob_gap", [(at - 3.0, math.exp(-((at - 5) ** 2) / 8)) for at in range(12)]
        case "support_density":
            series, points = "support_size", [(2.0**at, 0.4 * 0.7**at) for at in range(12)]
        case "calibration":
            series, points = "accuracy", [((at + 0.5) / BINS, (at + 0.3) / BINS) for at in range(BINS)]
        case "nvs_context":
            sentence = _points("all_selected_sentence", [(150.5, 0.62), (90.25, 0.48)])
            return sentence + _points("all_selected_word", [(190.0, 0.41), (110.0, 0.3)])
        case _:
            return []
    return _points(series, points)


def _points(series: str, points: list[tuple[float, float]]) -> Rows:
    return [
        {"series": series, "position": at, "x": x, "y": y, "label": f"{10 * at + 10}"}
        for at, (x, y) in enumerate(points)
    ]
