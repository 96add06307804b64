"""A study's settings in words: its variants and systems, changes since another run, and the YAML as run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import yaml
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.step import Column
from creamtea.report import text
from creamtea.report.cells import StudyResults
from creamtea.report.model import Block, Cell, Entry, Fact, Facts, Notes, Passage, Row, Section, Table, Texts
from creamtea.store.tables import StudyRow
from creamtea.study.spec import ImportedModel, ShippedModel, Study


def describe_variant(study: Study, name: str) -> str:
    """Name a variant's objective, its architecture if the variants differ in it, and its adaptation."""
    spec = study.variants[name]
    words = [spec.objective.describe()]
    if len({other.architecture.describe() for other in study.variants.values()}) > 1:
        words.append(spec.architecture.describe())
    if spec.start_from is not None:
        words.append(f"adapted from {describe_start(spec.start_from)}")
    return ", ".join(filter(None, words))


def describe_training(study: Study, name: str) -> Iterator[str]:
    """List how a variant is trained: objective, layers, text, batch, rate, updates, seeds."""
    spec, training = study.variants[name], study.variants[name].training
    yield spec.objective.describe()
    if study.imported_by(name) is None:
        yield describe_architecture(spec.architecture)
    if spec.nvs is not None:
        part = " alone" if training.freeze else "" if spec.nvs.detach else " that trains the encoder"
        yield f"NVS head{part}"
    if spec.start_from is not None:
        yield f"adapted from {describe_start(spec.start_from)}"
    yield f"text: {spec.corpus}" + (f", subwords {spec.subwords}" if spec.subwords else "")
    pairs, tokens = training.batch_sentences, training.batch_tokens
    batch = f"{pairs:,} pairs" if pairs else f"{tokens:,} target subwords"
    yield f"batch: {batch}" + (f" × {training.accumulate}" if training.accumulate > 1 else "")
    schedule = training.schedule.replace("_", " ")
    yield f"learning rate {training.learning_rate:g}, {schedule}, warm-up {training.warmup:,}"
    epochs = "" if training.max_epochs is None else f" or {training.max_epochs:,} epochs"
    yield f"at most {training.max_updates:,} updates{epochs}, patience {training.patience:,}"
    yield f"seed{'s' * (len(spec.seeds) > 1)} {', '.join(map(str, spec.seeds))}"


def describe_architecture(spec: Any) -> str:
    """Describe an architecture: "Transformer: encoder layers 3, decoder layers 3, width 128, …"."""
    settings = spec.model_dump(mode="json", exclude={"kind"})
    return f"{spec.title}: {', '.join(f'{name} {value}' for name, value in settings.items())}"


def describe_start(start: str | ImportedModel) -> str:
    """Name the variant or the imported model that a training starts from."""
    return start if isinstance(start, str) else describe_imported(start)


def describe_imported(model: ImportedModel | ShippedModel) -> str:
    """Name an imported model: "model opus-mt-en-de", "CTranslate2 model opus-ct2"."""
    library = "CTranslate2 " if isinstance(model, ShippedModel) else ""
    return f"{library}model {PurePath(model.path).name}"


def describe_system(study: Study, name: str) -> str:
    """Name variant or model, selection, search and precision: "softmax, NVS λ=0.9, beam 4, int8".

    For given outputs, say where they come from.
    """
    spec = study.systems[name]
    if spec.outputs:
        return "outputs from a file"
    if spec.reference is not None:
        return "human reference" + ("" if spec.reference == 1 else f" {spec.reference}")
    words = [
        describe_imported(spec.model) if spec.model is not None else describe_variant(study, spec.variant)
    ]
    if spec.ensemble:
        words.append(f"ensemble of {len(study.variants[spec.variant].seeds)}")
    if spec.selection.selects:
        words.append(spec.selection.describe())
    words.append(spec.search.describe())
    if spec.precision != "fp32":
        words.append(spec.precision)
    return ", ".join(words)


NOT_COMPARED = ("name", "description")  # keys of a study that change no result
_MISSING = object()


# campaign settings that pay raters or identify the organiser; a study may contain its campaigns
SECRET_SETTINGS = ("completion_code", "failing_code", "completion_url", "contact")


def configuration_section(
    session: Session, row: StudyRow, spec: Study, alone: bool, models: tuple[Fact, ...]
) -> Section:
    """Show a study's settings. `alone`: do not mention an earlier run of the same name."""
    blocks: list[Block] = [Facts("models", "Imported models", models)] if models else []
    if spec.variants:
        facts = tuple(Fact(name, tuple(describe_training(spec, name))) for name in spec.variants)
        blocks.append(Facts("variants", "Variants", facts))
    newest = (
        select(StudyRow)
        .where(StudyRow.name == row.name, StudyRow.id < row.id)
        .order_by(StudyRow.id.desc())
        .limit(1)
    )
    before = None if alone else session.scalar(newest)
    if before is not None:
        earlier = f"number {before.id}"
        changes = spec_table({earlier: before.spec, "this run": row.spec}, f"Changed since {earlier}")
        same = Notes("changes", (f"The configuration is the same as in the earlier run, {earlier}.",))
        blocks.append(changes or same)
    settings, _ = without_secrets(spec.model_dump(mode="json", exclude_defaults=True), "(not shown)")
    written = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=100)
    entry = Entry("The study as run, without defaults", (), (Passage("YAML", written),))
    blocks.append(Texts("yaml", "", "", (entry,)))
    return Section("configuration", "Configuration", tuple(blocks), folded=True)


def imported_models(results: StudyResults) -> tuple[Fact, ...]:
    """Return the name, content and licence of each model that was trained elsewhere."""
    return tuple(
        Fact(
            str(step.node.labels["model"]),
            (
                str(step.node.facts.get("name", "not imported yet")),
                f"sha256 {step.node.params['digest']}",
                f"licence: {step.node.facts.get('licence', 'not read yet')}",
                *filter(None, [step.node.facts.get("note")]),
            ),
        )
        for step in results.of("import_model")
    )


def without_secrets(value: Any, instead: str = "", place: str = "") -> tuple[Any, list[str]]:
    """Replace the secret settings of campaigns by `instead`; return the settings and the secrets' places."""
    if not isinstance(value, dict):
        return value, []
    public, secrets = {}, []
    for name, part in value.items():
        inner = f"{place}.{name}".lstrip(".")
        if name in SECRET_SETTINGS and not isinstance(part, dict):  # a system may be called "contact"
            public[name] = instead if part else part
            secrets += [inner] if part else []
        else:
            public[name], others = without_secrets(part, instead, inner)
            secrets += others
    return public, secrets


def spec_table(specs: Mapping[str, Mapping[str, Any]], title: str) -> Table | None:
    """Build a table of the settings in which studies differ; None if they do not."""
    compared = [
        without_secrets({key: value for key, value in spec.items() if key not in NOT_COMPARED})[0]
        for spec in specs.values()
    ]
    columns = tuple(Column(name, name, 0) for name in specs)
    rows = tuple(
        Row(path, {name: Cell("ok", words=_shown(value)) for name, value in zip(specs, values, strict=True)})
        for path, values in differing(compared, "")
    )
    return Table("specs", title, "setting", columns, rows) if rows else None


def differing(values: Sequence[Any], path: str) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the paths at which nested dictionaries differ; a subtree that one of them lacks is one path."""
    if all(isinstance(value, dict) for value in values):
        for key in dict.fromkeys(key for value in values for key in value):
            inner = [value.get(key, _MISSING) for value in values]
            yield from differing(inner, f"{path}.{key}" if path else key)
    elif any(value != values[0] for value in values):
        yield path, values


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "–"
    if isinstance(value, dict | list) and value:
        flow = yaml.safe_dump(
            _without_none(value), default_flow_style=True, sort_keys=False, allow_unicode=True
        )
        return text.one_line(flow, 200)
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.one_line(shown, 200) or '""'


def _without_none(value: Any) -> Any:
    """Remove the keys of a nested setting that are None."""
    if isinstance(value, dict):
        return {key: _without_none(part) for key, part in value.items() if part is not None}
    return list(map(_without_none, value)) if isinstance(value, list) else value
