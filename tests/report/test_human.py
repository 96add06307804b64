"""People's judgements: every table of a campaign, against the statistics' own functions and by hand."""

import re
from typing import Any

import numpy as np
import pytest
from blocks import figure, figures, notes, tables
from human_rows import ITEMS, MEANS, POINTS, SYSTEMS, Rated, add_campaign, cells, keys
from rated_campaigns import drawn_steps, side_by_side
from scipy import stats
from teatime_study import fill_study

from creamtea.methods.metrics import Chrf
from creamtea.report.build import build_report
from creamtea.report.human.build import build_human
from creamtea.report.model import Cell, Document
from creamtea.stats.estimate import mean_estimate
from creamtea.stats.paired import holm
from creamtea.store.database import Database


def test_means_and_both_intervals_of_baseline_is_100(tasting: Document) -> None:
    base, ours = POINTS.mean(axis=2)[:, 0], POINTS.mean(axis=2)[:, 1]
    found = cells(tasting, "means", "softmax-lexicon")
    assert (found["items"].value, found["ratings"].value) == (ITEMS, 2 * ITEMS)
    assert found["mean"].value == pytest.approx(ours.mean())
    assert [found["mean"].low, found["mean"].high] == pytest.approx(
        list(stats.ttest_1samp(ours, 0).confidence_interval())
    )
    assert found["percent"].value == pytest.approx(100 * ours.mean() / base.mean())
    paired = stats.ttest_rel(ours, base).confidence_interval()
    assert found["percent_paired_t"].low == pytest.approx(100 + 100 * paired.low / base.mean())
    residuals = ours - ours.mean() / base.mean() * base
    half = 100 * stats.t.ppf(0.975, ITEMS - 1) * residuals.std(ddof=1) / np.sqrt(ITEMS) / base.mean()
    assert found["percent"].high == pytest.approx(found["percent"].value + half)
    assert cells(tasting, "means", "softmax-greedy")["percent"] == Cell("ok", value=100.0)


def test_the_interval_of_a_mean_ends_where_the_scale_ends(rated: Rated) -> None:
    """Steps 24 to 26 of 26, three items: the t interval would reach above 6."""
    items = [{"steps": {"anna": [step, 12]}, "outputs": ["a", "b"]} for step in (23, 25, 25)]
    good = cells(rated(items, systems=["good", "middle"], raters=["anna"]), "means", "good")["mean"]
    interval = stats.ttest_1samp(1 + 0.2 * np.array([23, 25, 25]), 0).confidence_interval()
    assert interval.high > 6
    assert [good.low, good.high] == pytest.approx([interval.low, 6.0])


def one_at_a_time(*steps: tuple[int, int]) -> list[dict[str, Any]]:
    """Items with one output each. `steps`: the system's number, and Anna's step."""
    return [{"systems": [at], "steps": {"anna": [step]}} for at, step in steps]


def test_a_rated_system_that_no_ratio_can_be_drawn_of_is_not_called_unrated(rated: Rated) -> None:
    """The baseline has 0 points: as an MQM baseline, its mean is not above 0."""
    report = rated(one_at_a_time((0, 0), (1, 40)), protocol="da", systems=["base", "rated", "unrated"])
    assert figure(report, "hundred").missing == ("rated (no ratio)", "unrated (not rated)")


def test_a_percentage_is_over_the_items_rated_for_both_and_says_so(rated: Rated) -> None:
    """The second item has no rating of the other system: 50 of 40 points, though the means are 50 and 60."""
    one = one_at_a_time((0, 40), (1, 50), (0, 80))
    items = [item | {"segment_index": at} for at, item in zip((0, 0, 1), one, strict=True)]
    report = rated(items, protocol="da", systems=["base", "other"])
    assert cells(report, "means", "other")["percent"].value == pytest.approx(125)
    assert cells(report, "means", "base")["mean"].value == 60
    notes_of = {column.key: column.note for column in report.table("means").columns}
    assert "rated for both" in notes_of["percent"]


def test_penalties_are_no_percentage_of_the_baseline(rated: Rated) -> None:
    report = rated(one_at_a_time((0, 9950), (1, 9990)), protocol="mqm", systems=["base", "other"])
    assert cells(report, "means", "other").keys() == {"items", "ratings", "mean"}
    assert report.table("means").about == ""
    assert not any(path.endswith("hundred") for path in figures(report))


def test_a_campaign_of_one_system_compares_nothing(rated: Rated) -> None:
    items = one_at_a_time((0, 60), (0, 80), (0, 70))
    report = rated(items, protocol="da", systems=["only"], raters=["anna"])
    assert "comparisons" not in keys(report)
    mean, people = notes(report, "sentences")
    assert mean.startswith("People rated only on average: 70.0 [")
    assert people == "People: one system, so nothing to compare (3 of 3 item ratings (100 %) by 1 rater)."


def test_human_translations_do_not_compete_with_systems(rated: Rated) -> None:
    items = one_at_a_time((0, 60), (0, 80), (1, 50), (1, 60), (2, 90), (2, 92))
    settings = {"references": ["reference"]}
    report = rated(items, protocol="da", systems=["base", "other", "reference"], settings=settings)
    first = re.sub(r" \[.*?]", "", notes(report, "sentences")[0])
    assert first == "People rated base highest on average: 70.0; reference, a human translation: 91.0."


def test_the_three_tests_are_corrected_over_the_comparisons_with_the_baseline(tasting: Document) -> None:
    by_system = POINTS.mean(axis=2).T.round(9)
    t = [stats.ttest_rel(by_system[at], by_system[0]).pvalue for at in (1, 2)]
    ranks = [
        stats.wilcoxon((by_system[at] - by_system[0]).round(6), zero_method="pratt").pvalue for at in (1, 2)
    ]
    found = [cells(tasting, "comparisons", SYSTEMS[at]) for at in (1, 2)]
    assert [one["p_t"].value for one in found] == pytest.approx(holm(t))
    assert [one["p_signed_rank"].value for one in found] == pytest.approx(holm(ranks))
    assert found[0]["p_sign_flip"].value == pytest.approx(2 / 10_001)  # the least there is, twice
    assert found[0]["p_t"].words == "<0.001"


def test_every_comparison_has_one_verdict(tasting: Document) -> None:
    assert cells(tasting, "comparisons", "softmax-lexicon")["verdict"].words == "worse"
    undecided = cells(tasting, "comparisons", "softmax-nvs")["verdict"]
    assert undecided.words == "undecided"
    assert "items would decide it with 80 % power" in undecided.note
    assert f"{undecided.value:,.0f} items" in undecided.note


@pytest.mark.parametrize(("delta", "words"), [(0.1, "undecided"), (1.5, "no difference > 1.5")])
def test_the_registered_delta_decides_what_no_difference_is(
    delta: float, words: str, database: Database
) -> None:
    add_campaign(database, fill_study(database), settings={"delta": delta, "baseline": "softmax-nvs"})
    report = build_human(database, "tasting")
    assert report.table("comparisons").title == "Against softmax-nvs"
    assert cells(report, "comparisons", "softmax-greedy")["verdict"].words == words


def test_a_verdict_holds_for_other_raters_or_is_undecided(rated: Rated) -> None:
    """Anna sees a difference of a point on all items, Ben none; then both do."""

    def of_ben(gain: int) -> Document:
        level, noise = 10 + np.arange(40) % 7, np.arange(40) % 3 - 1
        beam = [level + 5 + noise, level + gain + noise]
        steps = np.stack([np.stack([level, level], axis=1), np.stack(beam, axis=1)], axis=1)
        return rated(side_by_side(steps), name=f"gain {gain}", ratings_per_item=2)

    alone, agreed = of_ben(0), of_ben(5)
    found = cells(alone, "comparisons", "beam")
    assert (found["verdict"].words, found["verdict"].value) == ("undecided (these raters: better)", None)
    assert found["verdict"].note.startswith("too few raters, or too much difference, to generalise")
    assert found["p_t"].words == "<0.001"
    assert cells(alone, "clusters", "beam")["difference"].low <= 0
    assert cells(agreed, "comparisons", "beam")["verdict"].words == "better"
    told = "2 raters are too few to show how raters differ"
    assert any(note.startswith(told) for note in notes(agreed, "gain 5/notes"))


def test_names_and_their_order_change_nothing(database: Database, rated: Rated) -> None:
    study = fill_study(database)
    steps = drawn_steps(20, MEANS[:3], raters=2)
    one = rated(side_by_side(steps), systems=SYSTEMS[:3], name="one", study_id=study)
    names = [SYSTEMS[2], SYSTEMS[0], SYSTEMS[1]]
    other = rated(side_by_side(steps[:, [2, 0, 1]]), systems=names, name="other", study_id=study)
    for table in ("means", "comparisons", "clusters", "wmt"):  # sums of z-scores are rounded by their order
        for system in SYSTEMS[1:3]:
            here, there = cells(one, table, system), cells(other, table, system)
            assert here.pop("z", Cell("ok")).value == pytest.approx(there.pop("z", Cell("ok")).value)
            assert here == there, (table, system)


def test_a_summary_has_the_same_numbers_and_no_more(tasted: Database) -> None:
    report, whole = (build_report(tasted, "teatime", complete=full) for full in (False, True))
    of_campaign = keys(whole) - keys(report)
    assert {"clusters", "agreement", "wmt", "metrics"} <= of_campaign
    assert report.table("means") == whole.table("means")
    for row in report.table("comparisons").rows:
        complete = cells(whole, "comparisons", row.name)
        assert row.cells == {key: cell for key, cell in complete.items() if key != "p_sign_flip"}


MANN_WHITNEY = "one-sided Mann-Whitney p < 0.05"
ON_BOTH = "with a higher mean, on the segments that are rated for both"
NEXT = "beats every one of the next"


@pytest.mark.parametrize(
    ("rule", "wins", "cluster"),
    [
        ("usual", MANN_WHITNEY, NEXT),
        ("crowd", MANN_WHITNEY, "with a system that has as many wins"),
        ("da-sqm", f"{MANN_WHITNEY}, {ON_BOTH}", "every system so far has as many wins"),
        ("esa", f"two-sided signed-rank p < 0.05, {ON_BOTH}", NEXT),
        (
            "2026",
            "the lower end of a one-sided 95 % bootstrap interval (100 resamples), paired or unpaired, is "
            "above 0",
            NEXT,
        ),
    ],
)
def test_wmt_mode_says_what_its_rule_does(tasted: Database, rule: str, wins: str, cluster: str) -> None:
    notes_of = {
        column.key: column.note for column in build_human(tasted, "tasting", wmt=rule).table("wmt").columns
    }
    assert notes_of["wins"] == f"systems that it beats: {wins}"
    assert cluster in notes_of["cluster"]
    assert ("z" in notes_of) == (rule not in ("esa", "2026"))
    assert ("kept" in notes_of) == (rule == "2026")


def test_wins_by_the_rule_of_2026_are_kept_where_the_verdict_agrees(tasted: Database) -> None:
    report = build_human(tasted, "tasting", wmt="2026")
    verdicts = [
        (row.name, row.setting.removeprefix("against "), row.cells["verdict"].words)
        for key in ("comparisons", "pairs")
        for row in report.table(key).rows
    ]
    better = [one for one, _, words in verdicts if words == "better"]
    better += [other for _, other, words in verdicts if words == "worse"]
    kept = {row.name: row.cells["kept"].value for row in report.table("wmt").rows}
    assert kept == {name: better.count(name) for name in kept}
    assert sum(kept.values()) > 0


def test_a_reference_that_is_rated_as_a_system_is_ranked_with_them(rated: Rated) -> None:
    """As WMT's tables rank HUMAN-B; they leave out only the REF lines of an import."""
    items = [{"steps": {"anna": [step, 12]}, "outputs": ["a", "b"]} for step in (23, 24, 25)]
    report = rated(items, systems=["refA", "plain"], raters=["anna"], settings={"references": ["refA"]})
    assert [row.name for row in report.table("wmt").rows] == ["refA", "plain"]


def test_the_whole_has_agreement_ranks_and_metrics(tasting: Document) -> None:
    alpha = cells(tasting, "agreement", "all raters")["alpha"]
    assert 0.2 < alpha.low < alpha.value < alpha.high < 1  # type: ignore[operator]
    assert [row.name for row in tasting.table("raters").rows] == ["anna", "ben"]
    assert cells(tasting, "raters", "anna")["severity"].value == pytest.approx(
        (POINTS[..., 0] - POINTS[..., 1]).mean()
    )
    assert cells(tasting, "wmt", "softmax-lexicon")["cluster"].value == 2
    assert cells(tasting, "wmt", "softmax-nvs")["rank_low"].value == 1
    people = cells(tasting, "people_and_metrics", "softmax-nvs")
    assert people["people"].value == pytest.approx(POINTS[:, 2].mean())
    shown = [column.title for column in tasting.table("people_and_metrics").columns][1:]
    assert shown == ["BLEU", "chrF", "COMET"]
    tau = {row.name: row.cells["kendall"].value for row in tasting.table("metrics").rows}
    assert tau["chrF"] > 0.5 > tau["BLEU"]  # type: ignore[operator]
    clusters = cells(tasting, "clusters", "softmax-lexicon")
    assert clusters["raters"].value == 2
    assert clusters["difference"].value == pytest.approx((POINTS[:, 1] - POINTS[:, 0]).mean())


def test_an_error_metric_agrees_with_people_where_it_is_low(
    tasted: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured() -> tuple[dict[str, float | None], float | None]:
        report = build_human(tasted, "tasting")
        rows = report.table("metrics").rows
        means = cells(report, "people_and_metrics", "softmax-nvs")
        return {row.name: row.cells["pearson"].value for row in rows}, means["chrf"].value

    higher, mean = measured()
    monkeypatch.setattr(Chrf, "better", "lower")
    # the mean is shown as it is
    assert measured() == ({**higher, "chrF": pytest.approx(-(higher["chrF"] or 0.0))}, mean)


# ---------------------------------------------------------------- preferences


def pair(systems: list[int], segment: int, *steps: list[int], **more: Any) -> dict[str, Any]:
    """An item of two systems. `steps`: Anna's, and Ben's if he rates it, too."""
    answers = dict(zip(("anna", "ben"), steps, strict=False))
    return {"systems": systems, "steps": answers, "segment_index": segment, **more}


def test_preferences_are_wins_ties_and_losses(rated: Rated) -> None:
    steps = [[2, 0]] * 6 + [[1, 1]] * 2 + [[0, 2]] * 2
    items = [pair([0, 1], segment, own) for segment, own in enumerate(steps)]
    items += [pair([1, 2], segment, [0, 2]) for segment in range(3)]
    report = rated(items, systems=["plain", "beam", "nvs"], protocol="preference")
    beam = cells(report, "comparisons", "beam")
    assert tally(beam) == [2, 2, 6]
    assert beam["items"].value == 10
    assert beam["difference"].value == pytest.approx(2 * (2 - 6) / 10)
    assert beam["p_sign"].value == pytest.approx(stats.binomtest(2, 8).pvalue)
    assert cells(report, "comparisons", "nvs")["items"].value == 0
    assert cells(report, "pairs", "nvs")["wins"].value == 3
    assert "percent" not in cells(report, "means", "plain")
    assert cells(report, "means", "plain")["mean"].value == pytest.approx(2 * (6 + 2 / 2) / 10)


def tally(found: dict[str, Cell]) -> list[float | None]:
    return [found[key].value for key in ("wins", "ties", "losses")]


def test_pairs_of_a_segment_are_one_piece_of_evidence_for_a_mean(rated: Rated) -> None:
    """Each of three systems is in two pairs of a segment; on some segments the first wins both."""
    own = [2, 0, 1] * 4  # the first system's score, by segment
    items = [
        item
        for segment, score in enumerate(own)
        for item in (
            pair([0, 1], segment, [score, 2 - score]),
            pair([0, 2], segment, [score, 2 - score]),
            pair([1, 2], segment, [[0, 2], [2, 0]][segment % 2]),
        )
    ]
    report = rated(items, systems=["plain", "beam", "nvs"], protocol="preference")
    mean = cells(report, "means", "plain")["mean"]
    expected = mean_estimate(np.repeat(own, 2), clusters=np.repeat(np.arange(12), 2))
    assert (mean.value, mean.low, mean.high) == pytest.approx((expected.value, expected.low, expected.high))
    grouped = "Pairs of a segment are grouped: intervals of means are over 12 segments."
    assert grouped in notes(report, "tasting/notes")
    assert cells(report, "comparisons", "beam")["items"].value == 12
    assert "documents" not in cells(report, "comparisons", "beam")


def test_segments_of_one_document_and_equal_means_are_named(rated: Rated) -> None:
    items = [item | {"document": "d"} for item in side_by_side([[[5, 6], [6, 5]], [[8, 8], [8, 8]]])]
    report = rated(items, ratings_per_item=2)
    assert notes(report, "sentences")[0].startswith("People rated plain and beam highest on average: 2.35 [")
    assert [note for note in notes(report, "tasting/notes") if "from one document" in note]


def test_raters_of_preferences_agree_on_pairs_and_are_not_severe(rated: Rated) -> None:
    steps = [[2, 0], [0, 2], [1, 1], [2, 0], [2, 0], [0, 2], [2, 0], [1, 1]]
    items = [pair([0, 1], at, own, [*steps, [2, 0]][at + 1]) for at, own in enumerate(steps)]
    report = rated(items, protocol="preference", ratings_per_item=2)
    assert [cells(report, "agreement", "all raters")[key].value for key in ("outputs", "ratings")] == [8, 16]
    anna = cells(report, "raters", "anna")
    assert anna["outputs"].value == 8
    assert "severity" not in anna
    assert anna["correlation"].low is not None


def test_the_sign_test_is_over_documents_where_the_others_are(rated: Rated) -> None:
    """Eight documents of three items: six are won as a whole, one is lost, and in one both win as often."""
    won, lost, tied = [2, 0], [0, 2], [1, 1]
    documents = [[won] * 3] * 5 + [[won, won, lost], [lost] * 3, [won, lost, tied]]
    items = [
        pair([1, 0], 3 * at + place, own, document=f"no. {at}")
        for at, steps in enumerate(documents)
        for place, own in enumerate(steps)
    ]
    beam = cells(rated(items, protocol="preference"), "comparisons", "beam")
    assert (beam["items"].value, beam["documents"].value) == (24, 8)
    assert beam["p_sign"].value == pytest.approx(stats.binomtest(6, 7).pvalue)


def test_where_all_differences_are_equal_the_verdict_is_corrected_too(rated: Rated) -> None:
    """Six items won, none lost: 2/2⁶ by the sign flips, for each of seven systems."""
    others = [[0, 2], [2, 0], [1, 1]]
    items = [
        pair([0, system], segment, steps, steps)
        for segment in range(6)
        for system in range(1, 8)
        for steps in [[0, 2] if system == 1 else others[(segment * system + system) % 3]]
    ]
    names = ["plain", *(f"system-{number}" for number in range(1, 8))]
    report = rated(items, systems=names, protocol="preference", ratings_per_item=2)
    first = cells(report, "comparisons", "system-1")
    assert first["p_t"].value is None
    assert first["p_sign_flip"].value == pytest.approx(7 * 2 / 2**6)
    assert first["verdict"].words == "undecided"


# ---------------------------------------------------------------- parts of a campaign


def test_the_part_drawn_at_random_stands_by_itself(database: Database, rated: Rated) -> None:
    steps = drawn_steps(30, MEANS[:3], raters=1)
    items = side_by_side(steps, ["anna"])
    for item in items[20:]:
        item |= {"kind": "random", "weight": 3.0}
    report = rated(items, systems=SYSTEMS[:3], study_id=fill_study(database), raters=["anna"])
    values = 1 + 0.2 * steps[:, 2, 0]
    assert cells(report, "random_means", "softmax-nvs")["items"].value == 10
    assert cells(report, "random_means", "softmax-nvs")["mean"].value == pytest.approx(values[20:].mean())
    weighted = np.average(values, weights=[1] * 20 + [3] * 10)
    assert cells(report, "means", "softmax-nvs")["mean"].value == pytest.approx(weighted)
    assert any(note.startswith("Items have weights") for note in notes(report, "tasting/notes"))
    assert "clusters" not in keys(report)  # one rater an item


def test_wins_of_the_random_part_are_those_of_its_items(rated: Rated) -> None:
    items = [pair([0, 1], at, [2, 0]) for at in range(20)]
    items += [pair([0, 1], 20 + at, [0, 2], kind="random", weight=3.0) for at in range(8)]
    report = rated(items, protocol="preference")
    tallies = [tally(cells(report, table, "beam")) for table in ("comparisons", "random_comparisons")]
    assert tallies == [[8, 0, 20], [8, 0, 0]]


@pytest.mark.parametrize(
    "items",
    [
        [],
        [{}],
        [{"steps": {"anna": [3, 9]}}],
        [{"steps": {"anna": [3, 3], "ben": [3, 3]}}] * 3,
        [{"steps": {"anna": [0, 0]}}, {"steps": {"ben": [25, 25]}}],
        [{"systems": [0], "steps": {"anna": [3]}}, {"systems": [1], "steps": {"ben": [4]}}],
    ],
)
@pytest.mark.parametrize("protocol", ["contrastive-da", "da", "preference"])
def test_few_and_equal_ratings_are_told_not_hidden(
    items: list[dict[str, Any]], protocol: str, rated: Rated
) -> None:
    if protocol == "preference":
        items = [
            {**item, "steps": {name: [1] * len(steps) for name, steps in item.get("steps", {}).items()}}
            for item in items
        ]
    for one in tables(rated(items, protocol=protocol)):
        for row in one.rows:
            for key, cell in row.cells.items():
                assert cell.value is not None or cell.note or cell.words, (one.key, row.name, key)
                assert all(v is None or np.isfinite(v) for v in (cell.value, cell.low, cell.high))
