"""A study's parts in a few words, as the report shows them."""

from __future__ import annotations

from creamtea.study.spec import Entmax, Metric, Objective, Scones, Selection, Softmax, Study


def objective(spec: Objective) -> str:
    match spec:
        case Softmax():
            return "softmax" + (f" ε={spec.label_smoothing:g}" if spec.label_smoothing else "")
        case Scones():
            return f"SCONES α={spec.alpha:g}"
        case Entmax():
            smoothing = f" ε={spec.label_smoothing:g}" if spec.label_smoothing else ""
            return f"{spec.alpha:g}-entmax{smoothing}"


def selection(spec: Selection) -> str:
    match spec.kind:
        case "full":
            return "full vocabulary"
        case "lexicon":
            return f"lexicon k={spec.k}"
        case "nvs":
            return f"NVS λ={spec.threshold:g}"


def system(study: Study, name: str) -> str:
    """Objective, selection, search and precision: "softmax, NVS λ=0.9, beam 4"."""
    spec = study.systems[name]
    words = [objective(study.variants[spec.variant].objective)]
    if spec.selection.kind != "full":
        words.append(selection(spec.selection))
    words.append("greedy" if spec.search.kind == "greedy" else f"beam {spec.search.width}")
    if spec.precision != "fp32":
        words.append(spec.precision)
    return ", ".join(words)


def metric(spec: Metric) -> str:
    """The metric's title: BLEU, BLEU (intl), chrF, chrF++, COMET, COMET (model)."""
    match spec.kind:
        case "bleu":
            return "BLEU" if spec.tokenize == "13a" else f"BLEU ({spec.tokenize})"
        case "chrf":
            return "chrF" + "+" * spec.word_order
        case "comet":
            default = type(spec).model_fields["model"].default
            return "COMET" if spec.model == default else f"COMET ({spec.model.rstrip('/').split('/')[-1]})"
