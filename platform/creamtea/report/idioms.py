"""Tables of idioms: the subwords that each selection misses, or that only the context selects."""

from __future__ import annotations

from collections.abc import Mapping

from creamtea.contract.columns import Column
from creamtea.methods.analysis import IdiomList
from creamtea.report import text
from creamtea.report.cells import Material
from creamtea.report.model import Cell, Row, Table
from creamtea.store.queries import MetricValue

MISSED = IdiomList(
    "Idioms whose subwords are missed",
    "recall",
    "missed",
    "Subwords of the idiom's translation that are not selected from the idiom's words alone (NVS paper, "
    "Figure 1).",
)


def missed_idioms(material: Material, test_set: str) -> tuple[Table, ...]:
    """A column for each system that selects."""
    systems = material.spec.systems_on(test_set)
    steps = {system: material.of("recall", system=system, test_set=test_set) for system in systems}
    return idiom_table(
        MISSED,
        {system: seeds[0].find(MISSED.metric, "idiom_words") for system, seeds in steps.items() if seeds},
    )


def idiom_table(listed: IdiomList, metrics: Mapping[str, MetricValue | None]) -> tuple[Table, ...]:
    """`metrics` by the title of their column. Idioms with the most subwords first; no table where none is
    listed."""
    lists = {
        title: metric.detail[listed.detail]
        for title, metric in metrics.items()
        if metric is not None and listed.detail in metric.detail
    }
    rows: dict[tuple[str, str], dict[str, list[str]]] = {}
    for title, found in lists.items():
        for idiom in found["idioms"]:
            place = f" (segment {idiom['segment'] + 1})" if "segment" in idiom else ""
            rows.setdefault((idiom["source"], idiom["target"] + place), {})[title] = idiom[listed.detail]
    if not rows:
        return ()
    ordered = sorted(rows.items(), key=lambda row: -max(map(len, row[1].values())))
    counts = "; ".join(f"{title}: {found['count']} of {found['of']}" for title, found in lists.items())
    table = Table(
        text.key_of(listed.title),
        listed.title,
        "idiom",
        tuple(Column(title, title, 0) for title in lists),
        tuple(
            Row(
                source,
                {
                    title: _cell(own.get(title, []), len(found["idioms"]), found["count"])
                    for title, found in lists.items()
                },
                description=target,
            )
            for (source, target), own in ordered
        ),
        f"{listed.about} ▁ begins a word. Of several seeds the first. With such subwords: {counts}.",
        folded=True,
    )
    return (table,)


def _cell(subwords: list[str], shown: int, count: int) -> Cell:
    if subwords or shown == count:
        return Cell("ok", words=", ".join(subwords) or "none")
    return Cell("absent", f"not among the {shown} that were listed, those with the most subwords", words="—")
