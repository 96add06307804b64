"""Tables of differences between the rows of an analysis: correction, seeds, what is missing, printers."""

from typing import Any

import analysis_rows
import pytest
import scipy.stats
from analysis_rows import row
from sqlalchemy import delete
from teatime_study import SPEC, Build, Spec, fill_study

from creamtea.report.analyses import NOT_COMPARED
from creamtea.report.build import build_report
from creamtea.report.cells import NO_MARK
from creamtea.report.model import Delta, Document, Notes, Section, Table
from creamtea.stats.paired import holm
from creamtea.store.database import Database
from creamtea.store.tables import StudyStep

KINDS = ("beam_sizes", "search_errors")


@pytest.fixture
def spec(spec: Spec) -> Spec:
    analyses = analysis_rows.analyses("test")
    spec["variants"]["softmax"]["seeds"] = [1, 2, 3]
    return spec | {"analyses": {kind: analyses[kind] for kind in KINDS}}


@pytest.fixture(scope="module")
def report(shared_report: Build) -> Document:
    analyses = analysis_rows.analyses("test")
    return shared_report(SPEC | {"analyses": {kind: analyses[kind] for kind in KINDS}})


def analysis(report: Document, kind: str) -> Section:
    return report.section(f"analyses/{kind}/{kind}")


def table(report: Document, kind: str, key: str) -> Table:
    (found,) = [
        block for block in analysis(report, kind).blocks if isinstance(block, Table) and block.key == key
    ]
    return found


def deltas(shown: Table, column: str) -> dict[str, Delta | None]:
    return {f"{row.name}, {row.setting}": row.cells[column].delta for row in shown.rows}


def delta_of(report: Document, against: str, column: str, name: str) -> Delta:
    """Of the beam sizes. `against`: "baselines" or "settings"."""
    delta = deltas(table(report, "beam_sizes", f"variant-beam-{against}"), column)[name]
    assert delta is not None
    return delta


def test_each_setting_is_compared_with_the_baselines_and_each_variant_with_beam_4(report: Document) -> None:
    between = table(report, "beam_sizes", "variant-beam-baselines")
    assert between.title == "Differences from softmax"
    assert [row.setting for row in between.rows] == [f"beam {w} against softmax" for w in (1, 4, 32, 128)]
    assert [row.against for row in between.rows] == [f"softmax, beam {w}" for w in (1, 4, 32, 128)]
    assert {row.name for row in between.rows} == {"scones"}
    over = table(report, "beam_sizes", "variant-beam-settings")
    assert over.title == "Differences from beam 4"
    of_bleu = deltas(over, "bleu")
    assert list(of_bleu) == [
        f"{name}, beam {width} against beam 4" for name in ("softmax", "scones") for width in (1, 32, 128)
    ]
    longer = delta_of(report, "baselines", "length_ratio", "scones, beam 32 against softmax")
    assert longer.value == pytest.approx(0.5)
    # p-values of a column are corrected together
    tests = [delta.p_values["bootstrap"] for delta in of_bleu.values() if delta is not None]
    assert [test.value for test in tests] == [0.2, 0.075, 0.025] * 2
    assert [test.corrected for test in tests] == holm([0.2, 0.075, 0.025] * 2)


def test_exact_search_has_no_errors_to_compare(report: Document) -> None:
    shown = table(report, "search_errors", "variant-search-settings")
    assert deltas(shown, "search_errors")["softmax, exact against beam 4"] is None
    assert deltas(shown, "bleu")["softmax, exact against beam 4"] is not None


def scored(subject: str, system: list[float], baseline: list[float]) -> dict[str, Any]:
    detail = {"p_value": 0.001, "p_two_sided": 0.001, "scores": {"system": system, "baseline": baseline}}
    return {"metrics": [row("delta", 2.0, subject, low=1.0, high=3.0, detail=detail)]}


BEAM_128 = "softmax, beam 128 against beam 4"
PAIRED = {"differences/beam_sizes/softmax": scored("bleu/128", [32, 37, 42], [30, 35, 40])}


def test_intervals_cover_the_seeds_of_both_as_between_systems(build: Build) -> None:
    changes = {"differences/beam_sizes/scones/softmax": scored("bleu/128", [32, 32, 32], [29, 30, 31])}
    delta = delta_of(build(changes), "baselines", "bleu", "scones, beam 128 against softmax")
    seeds = float(scipy.stats.t.ppf(0.975, 2)) / 3**0.5  # of 29, 30 and 31; three equal scores add nothing
    half = (1 + seeds**2) ** 0.5
    assert (delta.seeds_low, delta.seeds_high) == pytest.approx((2 - half, 2 + half), rel=1e-5)
    assert (delta.low, delta.high) == (1, 3)
    assert not delta.significant  # which it is over sentences


def test_over_settings_the_same_models_are_paired_by_seed(build: Build) -> None:
    delta = delta_of(build(PAIRED), "settings", "bleu", BEAM_128)
    assert (delta.seeds_low, delta.seeds_high) == pytest.approx((1, 3), rel=1e-5)
    assert delta.significant


def test_a_difference_of_two_near_zero_is_not_marked(build: Build) -> None:
    low = {"metrics": [row("bleu", 0.5, width) for width in (1, 4, 32, 128)]}
    delta = delta_of(build(PAIRED | {"beam_sizes/beam_sizes/softmax": low}), "settings", "bleu", BEAM_128)
    assert (delta.significant, delta.note) == (False, NO_MARK)


def test_a_comparison_that_failed_says_why(build: Build) -> None:
    failed = {"state": "failed", "error_kind": "deterministic", "error": "different numbers of segments"}
    report = build({"differences/beam_sizes/scones/softmax": failed})
    delta = delta_of(report, "baselines", "bleu", "scones, beam 4 against softmax")
    assert (delta.state, delta.note) == ("failed", "different numbers of segments")


def test_results_of_an_earlier_version_say_that_they_are_not_compared(database: Database, spec: Spec) -> None:
    fill_study(database, spec)
    with database.transaction() as writing:
        writing.execute(delete(StudyStep).where(StudyStep.node.startswith("differences/")))
    report = build_report(database, "teatime")
    for kind in KINDS:
        blocks = analysis(report, kind).blocks
        assert not [block for block in blocks if "Differences" in getattr(block, "title", "")]
        assert [block.paragraphs for block in blocks if isinstance(block, Notes)] == [(NOT_COMPARED,)]


def test_one_variant_alone_has_nothing_to_be_compared_with(build: Build, spec: Spec) -> None:
    alone = {"kind": "depth_limited", "test_set": "test", "lengths": [1, 2], "variants": ["softmax"]}
    spec["analyses"] = {"depth_limited": alone}
    blocks = analysis(build(), "depth_limited").blocks
    assert [block.key for block in blocks if isinstance(block, Table)] == ["variant-length"]
    assert not [block for block in blocks if isinstance(block, Notes)]
