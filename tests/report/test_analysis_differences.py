"""Tables of differences between the rows of an analysis: correction, seeds, what is missing, printers."""

from typing import Any

import analysis_rows
import pytest
import scipy.stats
from sqlalchemy import delete
from teatime_study import fill_study, row

from creamtea.report.analyses import NOT_COMPARED
from creamtea.report.build import build_report
from creamtea.report.cells import NO_MARK
from creamtea.report.model import Delta, Document, Notes, Section, Table
from creamtea.stats.paired import holm
from creamtea.store.database import Database
from creamtea.store.tables import StudyStep

KINDS = ("beam_sizes", "search_errors")


@pytest.fixture
def with_beams(spec: dict[str, Any]) -> dict[str, Any]:
    analyses = analysis_rows.analyses("test")
    spec["analyses"] = {kind: analyses[kind] for kind in KINDS}
    spec["variants"]["softmax"]["seeds"] = [1, 2, 3]
    return spec


def analysis(report: Document, kind: str) -> Section:
    return report.section(f"analyses/{kind}/{kind}")


def table(report: Document, kind: str, key: str) -> Table:
    (found,) = [
        block for block in analysis(report, kind).blocks if isinstance(block, Table) and block.key == key
    ]
    return found


def deltas(shown: Table, column: str) -> dict[str, Delta | None]:
    return {f"{row.name}, {row.setting}": row.cells[column].delta for row in shown.rows}


def of(shown: Table, column: str, name: str) -> Delta:
    delta = deltas(shown, column)[name]
    assert delta is not None
    return delta


def test_each_setting_is_compared_with_the_baselines_and_each_variant_with_beam_4(
    database: Database, with_beams: dict[str, Any]
) -> None:
    fill_study(database, with_beams)
    report = build_report(database, "teatime")
    between = table(report, "beam_sizes", "variant-beam-baselines")
    assert between.title == "Differences from softmax"
    assert [row.setting for row in between.rows] == [f"beam {w} against softmax" for w in (1, 4, 32, 128)]
    assert [row.against for row in between.rows] == [f"softmax, beam {w}" for w in (1, 4, 32, 128)]
    assert {row.name for row in between.rows} == {"scones"}
    over = table(report, "beam_sizes", "variant-beam-settings")
    assert over.title == "Differences from beam 4"
    assert list(deltas(over, "bleu")) == [
        f"{name}, beam {width} against beam 4" for name in ("softmax", "scones") for width in (1, 32, 128)
    ]
    assert of(between, "length_ratio", "scones, beam 32 against softmax").value == pytest.approx(0.5)


def test_p_values_of_a_column_are_corrected_together(database: Database, with_beams: dict[str, Any]) -> None:
    fill_study(database, with_beams)
    over = table(build_report(database, "teatime"), "beam_sizes", "variant-beam-settings")
    tests = [delta.p_values["bootstrap"] for delta in deltas(over, "bleu").values() if delta is not None]
    assert [test.value for test in tests] == [0.2, 0.075, 0.025] * 2
    assert [test.corrected for test in tests] == holm([0.2, 0.075, 0.025] * 2)


def test_exact_search_has_no_errors_to_compare(database: Database, with_beams: dict[str, Any]) -> None:
    fill_study(database, with_beams)
    shown = table(build_report(database, "teatime"), "search_errors", "variant-search-settings")
    errors, bleu = (deltas(shown, column) for column in ("search_errors", "bleu"))
    assert errors["softmax, exact against beam 4"] is None
    assert bleu["softmax, exact against beam 4"] is not None


def scored(subject: str, system: list[float], baseline: list[float]) -> dict[str, Any]:
    detail = {"p_value": 0.001, "p_two_sided": 0.001, "scores": {"system": system, "baseline": baseline}}
    return {"metrics": [row("delta", 2.0, subject, low=1.0, high=3.0, detail=detail)]}


def test_intervals_cover_the_seeds_of_both_as_between_systems(
    database: Database, with_beams: dict[str, Any]
) -> None:
    place = "differences/beam_sizes/scones/softmax"
    fill_study(database, with_beams, {place: scored("bleu/128", [32, 32, 32], [29, 30, 31])})
    shown = table(build_report(database, "teatime"), "beam_sizes", "variant-beam-baselines")
    delta = of(shown, "bleu", "scones, beam 128 against softmax")
    seeds = float(scipy.stats.t.ppf(0.975, 2)) / 3**0.5  # of 29, 30 and 31; three equal scores add nothing
    half = (1 + seeds**2) ** 0.5
    assert (delta.seeds_low, delta.seeds_high) == pytest.approx((2 - half, 2 + half), rel=1e-5)
    assert (delta.low, delta.high) == (1, 3)
    assert not delta.significant  # which it is over sentences


def test_over_settings_the_same_models_are_paired_by_seed(
    database: Database, with_beams: dict[str, Any]
) -> None:
    changes = {"differences/beam_sizes/softmax": scored("bleu/128", [32, 37, 42], [30, 35, 40])}
    fill_study(database, with_beams, changes)
    shown = table(build_report(database, "teatime"), "beam_sizes", "variant-beam-settings")
    delta = of(shown, "bleu", "softmax, beam 128 against beam 4")
    assert (delta.seeds_low, delta.seeds_high) == pytest.approx((1, 3), rel=1e-5)
    assert delta.significant


def test_a_difference_of_two_near_zero_is_not_marked(database: Database, with_beams: dict[str, Any]) -> None:
    low = {"metrics": [row("bleu", 0.5, width) for width in (1, 4, 32, 128)]}
    changes = {"differences/beam_sizes/softmax": scored("bleu/128", [32, 37, 42], [30, 35, 40])}
    fill_study(database, with_beams, changes | {"beam_sizes/beam_sizes/softmax": low})
    shown = table(build_report(database, "teatime"), "beam_sizes", "variant-beam-settings")
    delta = of(shown, "bleu", "softmax, beam 128 against beam 4")
    assert (delta.significant, delta.note) == (False, NO_MARK)


def test_a_comparison_that_failed_says_why(database: Database, with_beams: dict[str, Any]) -> None:
    failed = {"state": "failed", "error_kind": "deterministic", "error": "different numbers of segments"}
    fill_study(
        database, spec=with_beams, changes={"differences/beam_sizes/scones/softmax": failed}, state="failed"
    )
    shown = table(build_report(database, "teatime"), "beam_sizes", "variant-beam-baselines")
    delta = of(shown, "bleu", "scones, beam 4 against softmax")
    assert (delta.state, delta.note) == ("failed", "different numbers of segments")


def test_results_of_an_earlier_version_say_that_they_are_not_compared(
    database: Database, with_beams: dict[str, Any]
) -> None:
    fill_study(database, with_beams)
    with database.transaction() as writing:
        writing.execute(delete(StudyStep).where(StudyStep.node.startswith("differences/")))
    report = build_report(database, "teatime")
    for kind in KINDS:
        blocks = analysis(report, kind).blocks
        assert not [block for block in blocks if "Differences" in getattr(block, "title", "")]
        assert [block.paragraphs for block in blocks if isinstance(block, Notes)] == [(NOT_COMPARED,)]


def test_one_variant_alone_has_nothing_to_be_compared_with(
    database: Database, with_beams: dict[str, Any]
) -> None:
    alone = {"kind": "depth_limited", "test_set": "test", "lengths": [1, 2], "variants": ["softmax"]}
    fill_study(database, spec=with_beams | {"analyses": {"depth_limited": alone}})
    blocks = analysis(build_report(database, "teatime"), "depth_limited").blocks
    assert [block.key for block in blocks if isinstance(block, Table)] == ["variant-length"]
    assert not [block for block in blocks if isinstance(block, Notes)]
