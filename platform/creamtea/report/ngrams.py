"""What each system says more often than the one it is compared with: tables of characteristic n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.diff import joined, words_of_language
from creamtea.orders.specs import spec_of
from creamtea.report import text
from creamtea.report.cells import Material
from creamtea.report.model import Cell, Row, Section, Table
from creamtea.report.scores import near_zero
from creamtea.stats.ngrams import LONGEST, CharacteristicNGram, characteristic_ngrams
from creamtea.store.database import Database
from creamtea.store.queries import find_study
from creamtea.store.tables import Hypothesis

KEY = "ngrams"
MAX_ROWS = 6  # of those that a system has more often, and of those that it has less often
ABOUT = (
    f"Words and phrases of up to {LONGEST} words (characters, where a script has no blanks) that one of two "
    "systems has in significantly more segments than the other: exact sign test over segments (McNemar "
    "1947), p after Holm's correction over those that could be significant (Tarone 1990). The strongest in "
    "either direction, of the first seed; systems without any are not listed."
)


def build_ngrams(database: Database, study: int) -> Section:
    """The section of a study by its number, which reads every output; without blocks where it has nothing."""
    with database.session() as session:
        row = find_study(session, study)
        return ngrams_section(session, Material(session, row.id, spec_of(row)))


def ngrams_section(session: Session, material: Material) -> Section:
    sections = (_on_test_set(session, material, test_set) for test_set in material.spec.test_sets)
    return Section(
        KEY, "Characteristic n-grams", tuple(section for section in sections if section.blocks), about=ABOUT
    )


def _on_test_set(session: Session, material: Material, test_set: str) -> Section:
    spec = material.spec
    outputs: dict[str, list[tuple[int, list[str]]]] = {}

    def outputs_of(system: str) -> list[tuple[int, list[str]]]:
        if system not in outputs:
            steps = material.outputs(system, test_set)
            there = steps and steps[0].node.state == "succeeded"  # of the first seed, whatever others have
            language = spec.languages.target
            outputs[system] = _texts(session, steps[0].node.key, language) if there else []
        return outputs[system]

    tables, low = [], near_zero(material, test_set)
    for system in (name for name in spec.systems_on(test_set) if spec.compared(name)):
        baseline = spec.baseline_of(system)
        if system in low and baseline in low:
            continue  # what both get wrong tells nothing of either, as with the marks of a significance
        ours, theirs = outputs_of(system), outputs_of(baseline)
        if not ours or [index for index, _ in ours] != [index for index, _ in theirs]:
            continue  # one of them has not translated all of it yet
        found = characteristic_ngrams([own for _, own in ours], [own for _, own in theirs])
        if found:
            tables.append(_table(system, baseline, found))
    several = len(spec.test_sets) > 1
    return Section(test_set, test_set if several else "", tuple(tables), test_set=test_set)


def _texts(session: Session, key: str, language: str) -> list[tuple[int, list[str]]]:
    rows = session.execute(
        select(Hypothesis.index, Hypothesis.text).where(Hypothesis.step_key == key).order_by(Hypothesis.index)
    )
    return [(index, words_of_language(output, language)) for index, output in rows]


def _table(system: str, baseline: str, found: Sequence[CharacteristicNGram]) -> Table:
    columns = (
        Column("ours", system, 0, note="segments"),
        Column("theirs", baseline, 0, note="segments"),
        Column("p", "p", 3, note="sign test, after Holm"),
    )
    strongest = [
        *[one for one in found if one.more][:MAX_ROWS],
        *[one for one in found if not one.more][:MAX_ROWS],
    ]
    rows = tuple(
        Row(
            joined(one.ngram),
            {
                "ours": Cell("ok", value=one.ours),
                "theirs": Cell("ok", value=one.theirs),
                "p": Cell("ok", value=one.p_corrected, words=text.p_value(one.p_corrected)),
            },
            description=f"more in {system if one.more else baseline}",
        )
        for one in strongest
    )
    left_out = len(found) - len(rows)
    about = "Numbers of segments that have the n-gram."
    about += f" {left_out:,} more n-grams are significant." if left_out else ""
    return Table(system, f"{system} against {baseline}", "n-gram", columns, rows, about, folded=True)


def of_test_set(section: Section, test_set: str) -> Section:
    """What a page about one test set shows of it."""
    return replace(
        section,
        blocks=tuple(
            block for block in section.blocks if isinstance(block, Section) and block.test_set == test_set
        ),
    )
