"""What a study was: its variants in words, what differs from another run, and the YAML as run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.report import describe, text
from creamtea.report.cells import Material
from creamtea.report.model import Block, Cell, Entry, Fact, Facts, Notes, Passage, Row, Section, Table, Texts
from creamtea.store.tables import StudyRow
from creamtea.study.spec import Study

NOT_COMPARED = ("name", "description")  # keys of a study that change no result
_MISSING = object()


def configuration_section(
    session: Session, row: StudyRow, spec: Study, alone: bool, models: tuple[Fact, ...]
) -> Section:
    """`alone`: with no word of an earlier run of the same name; `models`: those that were imported."""
    blocks: list[Block] = [Facts("models", "Imported models", models)] if models else []
    if spec.variants:
        facts = tuple(Fact(name, tuple(describe.training(spec, name))) for name in spec.variants)
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
        same = Notes("changes", (f"The configuration is that of the earlier run, {earlier}.",))
        blocks.append(changes or same)
    own = spec.model_dump(mode="json", exclude_defaults=True)
    written = yaml.safe_dump(own, sort_keys=False, allow_unicode=True, width=100)
    entry = Entry("The study as run, without what is a default", (), (Passage("YAML", written),))
    blocks.append(Texts("yaml", "", "", (entry,)))
    return Section("configuration", "Configuration", tuple(blocks), folded=True)


def imported_models(material: Material) -> tuple[Fact, ...]:
    """The name, content and licence of each model that was trained elsewhere."""
    return tuple(
        Fact(
            str(step.node.labels["model"]),
            (
                str(step.node.facts.get("name", "not imported yet")),
                f"sha256 {step.node.params['digest']}",
                f"licence: {step.node.facts.get('licence', 'not read yet')}",
            ),
        )
        for step in material.of("import_model")
    )


def spec_table(specs: Mapping[str, Mapping[str, Any]], title: str) -> Table | None:
    """A row for each setting in which studies differ, given as plain JSON by the names of the columns; None
    where they do not."""
    own = [{key: value for key, value in spec.items() if key not in NOT_COMPARED} for spec in specs.values()]
    columns = tuple(Column(name, name, 0) for name in specs)
    rows = tuple(
        Row(path, {name: Cell("ok", words=_shown(value)) for name, value in zip(specs, values, strict=True)})
        for path, values in _differing(own, "")
    )
    return Table("specs", title, "setting", columns, rows) if rows else None


def _differing(values: Sequence[Any], path: str) -> Iterator[tuple[str, Sequence[Any]]]:
    """The places in which nested dictionaries differ; what one of them lacks is one place."""
    if all(isinstance(value, dict) for value in values):
        for key in dict.fromkeys(key for value in values for key in value):
            inner = [value.get(key, _MISSING) for value in values]
            yield from _differing(inner, f"{path}.{key}" if path else key)
    elif any(value != values[0] for value in values):
        yield path, values


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "–"
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.one_line(shown, 200) or '""'
