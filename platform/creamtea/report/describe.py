"""A study's variants and systems in a few words, as the report shows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from creamtea.study.spec import ImportedModel, Study


def variant(study: Study, name: str) -> str:
    """Objective, architecture where the study's variants differ in it, and adaptation: "SCONES α=0.5, base,
    adapted from news"."""
    spec = study.variants[name]
    words = [spec.objective.describe()]
    if len({other.architecture.describe() for other in study.variants.values()}) > 1:
        words.append(spec.architecture.describe())
    if spec.start_from is not None:
        words.append(f"adapted from {start_of(spec.start_from)}")
    return ", ".join(filter(None, words))


def training(study: Study, name: str) -> Iterator[str]:
    """What a variant is and how it is trained: objective, layers, text, batch, rate, updates, seeds."""
    spec, own = study.variants[name], study.variants[name].training
    yield spec.objective.describe()
    if study.imported_by(name) is None:
        yield architecture(spec.architecture)
    if spec.nvs is not None:
        yield "NVS head"
    if spec.start_from is not None:
        yield f"adapted from {start_of(spec.start_from)}"
    yield f"text: {spec.corpus}" + (f", subwords {spec.subwords}" if spec.subwords else "")
    pairs, tokens = own.batch_sentences, own.batch_tokens
    batch = f"{pairs:,} pairs" if pairs else f"{tokens:,} target subwords"
    yield f"batch: {batch}" + (f" × {own.accumulate}" if own.accumulate > 1 else "")
    yield f"learning rate {own.learning_rate:g}, {own.schedule.replace('_', ' ')}, warm-up {own.warmup:,}"
    epochs = "" if own.max_epochs is None else f" or {own.max_epochs:,} epochs"
    yield f"at most {own.max_updates:,} updates{epochs}, patience {own.patience:,}"
    yield f"seed{'s' * (len(spec.seeds) > 1)} {', '.join(map(str, spec.seeds))}"


def architecture(spec: Any) -> str:
    """As "Transformer: encoder layers 3, decoder layers 3, width 128, …"."""
    settings = spec.model_dump(mode="json", exclude={"kind"})
    return f"{spec.title}: {', '.join(f'{name} {value}' for name, value in settings.items())}"


def start_of(start: str | ImportedModel) -> str:
    return start if isinstance(start, str) else imported(start)


def imported(model: ImportedModel) -> str:
    """As "model opus-mt-en-de"."""
    return f"model {PurePath(model.marian).name}"


def system(study: Study, name: str) -> str:
    """Its variant or model, selection, search and precision: "softmax, NVS λ=0.9, beam 4, int8"; or where
    outputs that are given come from."""
    spec = study.systems[name]
    if spec.outputs:
        return "outputs from a file"
    if spec.reference is not None:
        return "human reference" + ("" if spec.reference == 1 else f" {spec.reference}")
    words = [imported(spec.model) if spec.model is not None else variant(study, spec.variant)]
    if spec.ensemble:
        words.append(f"ensemble of {len(study.variants[spec.variant].seeds)}")
    if spec.selection.selects:
        words.append(spec.selection.describe())
    words.append(spec.search.describe())
    if spec.precision != "fp32":
        words.append(spec.precision)
    return ", ".join(words)
