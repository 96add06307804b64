"""Imports: what they store, how they leave systems out, which names they refuse, and what errors cost."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from small_campaigns import results_of
from whole_campaign import MEDIA, answer, everything

from creamtea.errors import InputError
from creamtea.human.formats.base import APPRAISE, FOREIGN, MQM, MT_METRICS_EVAL, PEARMUT, ImportFacts, NotKept
from creamtea.human.formats.exchange import Imported, export_campaign, import_campaign, without_systems
from creamtea.human.formats.rating_rows import RatingRow, rows_of
from creamtea.human.formats.storing import collect
from creamtea.human.making.campaigns import progress_by_kind
from creamtea.human.making.proposals import check_proposed
from creamtea.human.protocols.taxonomy import GOOGLE, Taxonomy
from creamtea.human.results.ratings import load_ratings
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign


def imported(
    database: Database, folder: Path, text: str, protocol: str, dry_run: bool = False, **facts: Any
) -> Imported:
    path = folder / "ratings.csv"
    path.write_text(text)
    given = ImportFacts(**{"name": "old", "protocol": protocol, **facts})
    return import_campaign(database, path, "csv", given, "test", dry_run=dry_run)


def rows(database: Database) -> list[RatingRow]:
    return list(rows_of(collect(database, "old")))


def test_what_was_made_elsewhere_has_no_plan(database: Database, tmp_path: Path) -> None:
    """One segment of three raters does not make the others incomplete."""
    raters = {segment: ["ann", "bob", "cid"] if segment == 4 else ["ann"] for segment in range(8)}
    lines = [
        f"{rater},{segment},{system},{7 * segment + at}\n"
        for segment, own in raters.items()
        for rater in own
        for at, system in enumerate("ab")
    ]
    imported(database, tmp_path, "rater,segment,system,value\n" + "".join(lines), "da")
    with database.session() as session:
        campaign = find_campaign(session, "old")
        ratings = load_ratings(session, campaign)
        (kind,) = progress_by_kind(session, campaign)
    assert (ratings.submitted, ratings.wanted, ratings.left_out.incomplete_items) == (20, 20, 0)
    assert (kind.wanted, kind.submitted, kind.complete) == (20, 20, 16)
    report = build_human(database, "old")
    assert "closed: 20 item ratings by 3 raters" in report.sections[1].blocks[0].facts  # below the answer


@pytest.mark.parametrize(("lowest", "percent"), [(0.0, 200.0), (-0.5, None)])
def test_scores_below_zero_have_no_percentages(
    database: Database, tmp_path: Path, lowest: float, percent: float | None
) -> None:
    values = {"A": (lowest, 1 - lowest), "B": (lowest, 2 - lowest)}  # means 0.5 and 1
    lines = [f"ann,{at},{system},{both[at]}\n" for system, both in values.items() for at in range(2)]
    imported(database, tmp_path, "rater,segment,system,value\n" + "".join(lines), "scores")
    report = build_human(database, "old")
    cells = {row.name: row.cells for row in report.table("means").rows}["B"]
    assert cells["mean"].value == 1.0
    assert (cells["percent"].value if "percent" in cells else None) == percent
    assert "scores of segments, on any scale" in report.sections[1].blocks[0].facts


RATINGS = "rater,segment,system,step,item,kind,original\n" + "".join(
    f"{rater},{segment},{system},50,{item},{kind},{original}\n"
    for rater, segment, system, item, kind, original in [
        ("ann", 1, "A", 0, "rated", ""),
        ("ann", 1, "B", 1, "rated", ""),
        ("ann", 1, "B", 2, "repeat", 1),
        ("bob", 2, "B", 3, "rated", ""),
    ]
)


def test_systems_are_left_out_with_all_that_is_theirs(other: Database, tmp_path: Path) -> None:
    tried = imported(other, tmp_path, RATINGS, "da", dry_run=True, leave_out=("B",))
    lost = NotKept(3, "ratings of systems left out (B)"), NotKept(1, "raters of these alone")
    assert tried.not_kept == lost
    done = imported(other, tmp_path, RATINGS, "da", leave_out=("B",))  # the dry run stored nothing
    assert done == tried
    content = collect(other, "old")
    assert [(row.system, row.rater, row.item) for row in rows_of(content)] == [("A", "ann", 0)]
    assert [person.pseudonym for person in content.raters] == ["ann"]
    assert len(content.items) == 1


def test_of_outputs_shown_together_the_others_stay(other: Database, tmp_path: Path) -> None:
    text = "rater,segment,system,value\nann,1,A,2.0\nann,1,B,3.0\nann,1,C,4.0\n"
    imported(other, tmp_path, text, "contrastive-da", leave_out=("B",))
    assert [(row.system, row.value, row.shown) for row in rows(other)] == [("A", "2.0", 1), ("C", "4.0", 2)]


def test_a_page_that_loses_its_first_item_goes_by_the_next() -> None:
    items = tuple(dataclasses.replace(item, page=0) for item in everything().items[:2])
    items = (dataclasses.replace(items[0], systems=("A",), outputs=("text",)), items[1])
    content = dataclasses.replace(everything(), items=items, answers=())
    left, _ = without_systems(content, ["A"])
    assert [(item.position, item.page, item.systems) for item in left.items] == [(1, 1, ("B",))]


def test_proposals_and_files_follow_their_systems_and_practice_goes() -> None:
    assert everything().items[0].proposals is not None
    left, not_kept = without_systems(everything(), ["A"])
    assert left.items[0].proposals == {}
    assert left.items[0].media == (MEDIA,)  # what stands beside the source, and no file of A
    assert {item.kind for item in left.items} == {"rated", "random", "repeat"}
    content = dataclasses.replace(everything(), answers=(answer(3, "ann", 1, ("A", "B")),))
    left, not_kept = without_systems(content, ["A"])
    assert not_kept[0] == NotKept(2, "answers to practice and checks")


def test_a_preference_to_a_system_that_is_left_out_goes(other: Database, tmp_path: Path) -> None:
    pairs = [("A", 2, "B", 0), ("A", 2, "C", 0), ("C", 2, "B", 0)]
    lines = [f"ann,1,{a},{x},{n}\nann,1,{b},{y},{n}\n" for n, (a, x, b, y) in enumerate(pairs)]
    text = "rater,segment,system,value,item\n" + "".join(lines)
    done = imported(other, tmp_path, text, "preference", leave_out=("C",))
    assert done.not_kept == (NotKept(4, "ratings of systems left out (C)"),)
    assert [(row.item, row.system) for row in rows(other)] == [(0, "A"), (0, "B")]


ONE = "rater,segment,system,value\nann,1,A,5\n"
PAIRS = "rater,segment,system,value,item\nann,1,A,2,0\nann,1,C,0,0\nann,1,B,2,1\nann,1,C,0,1\n"


@pytest.mark.parametrize(
    ("text", "facts", "said"),
    [
        # a campaign with such a name could be exported, but its export could not be read
        (ONE, {"name": "c" * 301}, "campaign name of at most 300"),
        (ONE.replace("ann", "ann" * 101), {}, "'annann.*at most 300"),
        (ONE, {"name": " "}, "name of the campaign: found ' '; allowed: text that is not blank"),
        (ONE, {"test_set": "a\0"}, r"--test-set: found 'a\\x00', with a NUL character"),
        (ONE, {"source_language": "\ud800", "target_language": "de"}, "--source-language: .* surrogate"),
        (ONE, {"first_segment": 0}, "--first-segment is only for --format appraise"),
        (ONE, {"rater_statistics": Path("x")}, "--rater-statistics is only for --format appraise"),
        (RATINGS, {"leave_out": ("C",)}, "--leave-out C: no such system; there are A, B"),
        (RATINGS, {"leave_out": ("A",), "baseline": "A"}, "--leave-out A: it is the baseline"),
        (RATINGS, {"leave_out": ("A", "B")}, "no system would be left"),
        (PAIRS, {"leave_out": ("C",), "protocol": "preference"}, "--leave-out C: every item shows one of th"),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_facts_that_no_campaign_can_have(
    other: Database, tmp_path: Path, text: str, facts: dict[str, Any], said: str, dry_run: bool
) -> None:
    with pytest.raises(InputError, match=said):
        imported(other, tmp_path, text, dry_run=dry_run, **{"protocol": "da", **facts})


# ---------------------------------------------------------------- what errors cost


OWN = Taxonomy.model_validate(
    {
        "severities": [{"name": "minor", "weight": 2}, {"name": "major", "weight": 7}],
        "categories": [{"name": "Accuracy", "kinds": ["Omission", "Addition"]}, {"name": "Other"}],
    }
)
ERRORS: list[dict[str, Any]] = [
    {"start": 0, "end": 1, "severity": "minor", "category": ["Accuracy", "Addition"]},
    {"start": 3, "end": 4, "severity": "major", "category": ["Other"]},
]
VALUES = {("A", 0): "-9.0", ("A", 1): "-2.0", ("B", 0): "0.0", ("B", 1): "-7.0"}
LOSS = NotKept(4, "costs of errors that are unusual, and scores by them")


@pytest.fixture
def own(database: Database, tmp_path: Path) -> Database:
    """Return a database that holds the campaign `own`."""
    path = tmp_path / "made.jsonl"
    errors = {("A", 0): ERRORS, ("A", 1): ERRORS[:1], ("B", 0): [], ("B", 1): ERRORS[1:]}
    rows = [
        {
            **{"rater": "ann", "segment": segment, "system": system, "document": "talk"},
            **{"source": f"Satz {segment}", "output": f"sentence {segment}", "payload": {"spans": spans}},
        }
        for (system, segment), spans in errors.items()
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    import_campaign(database, path, "jsonl", ImportFacts("own", "mqm", taxonomy=OWN), "test")
    assert values(database, "own") == VALUES
    return database


def values(database: Database, campaign: str) -> dict[tuple[str, int], str | None]:
    return {(row.system, row.segment): row.value for row in rows_of(collect(database, campaign))}


FILES = {APPRAISE: "scores.csv", MQM: "mqm.tsv", MT_METRICS_EVAL: ".", PEARMUT: "."}


@pytest.mark.parametrize("kind", FOREIGN)
def test_other_formats_say_what_errors_cost_or_name_the_loss(
    own: Database, tmp_path: Path, kind: str
) -> None:
    done = export_campaign(own, "own", kind, tmp_path / "out", "test")
    path = tmp_path / "out" / FILES[kind]
    usual = import_campaign(own, path, kind, ImportFacts("usual", "mqm"), "test")
    if kind != MT_METRICS_EVAL:  # the others have no place for a cost
        assert LOSS in done.not_kept
        assert values(own, "usual") == {("A", 0): "-6.0", ("A", 1): "-1.0", ("B", 0): "0.0", ("B", 1): "-5.0"}
    else:
        assert LOSS.what not in {part.what for part in done.not_kept}
        assert values(own, "usual") == VALUES
        assert usual.notices == (
            NotKept(
                4,
                "errors whose cost in the file, which counts, is not that of the usual weights: "
                "Accuracy/Addition, minor: 2 instead of 1 (2); Other, major: 7 instead of 5 (2)",
            ),
        )
    again = import_campaign(own, path, kind, ImportFacts("again", "mqm", taxonomy=OWN), "test")
    assert values(own, "again") == VALUES
    assert again.notices == ()
    assert not [part for part in again.not_kept if "errors cost" in part.what or "mqm_" in part.what]
    assert Taxonomy.model_validate(collect(own, "again").settings["taxonomy"]) == OWN


# as WMT 2023's folder has them: `score` is what the error costs, 0 for a creative reinterpretation
FOLDER = {
    "documents/en-de.docs": "news\td1\n",
    "sources/en-de.txt": "A source.\n",
    "system-outputs/en-de/A.txt": "Eine Quelle.\n",
    "system-outputs/en-de/B.txt": "Ein Brunnen.\n",
    "human-scores/en-de.mqm.seg.score": "A\t0\nB\t-1\n",
}


def mt_metrics_eval(folder: Path, first: dict[str, Any], second: dict[str, Any]) -> Path:
    """A folder with one error of A and one of B."""
    lines = [
        f"{system}\t{json.dumps({'errors': [error]})}\n" for system, error in (("A", first), ("B", second))
    ]
    for name, text in {**FOLDER, "human-scores/en-de.mqm.seg.rating": "".join(lines)}.items():
        (folder / "wmt" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "wmt" / name).write_text(text)
    return folder / "wmt"


def error(category: str, severity: str, score: Any) -> dict[str, Any]:
    return {"start": 0, "end": 3, "category": category, "severity": severity, "score": score}


@pytest.mark.parametrize(
    ("first", "second", "scores", "noticed"),
    [
        # the file has A at 0 and B at -1; by severities alone A would be at -5, behind B
        (("accuracy/register", 0), ("other", 1.0), ("0.0", "-1.0"), "register, major: 0 instead of 5 (1)"),
        (("other", 0.25), ("other", 1.75), ("-0.25", "-1.75"), None),
        (("other", 2.5), ("other", 12), ("-2.5", "-12.0"), None),
        (("other", 0.125), ("other", 1e-6), ("-0.125000", "-0.000001"), None),
    ],
)
def test_costs_of_an_mt_metrics_eval_folder_count(
    database: Database, tmp_path: Path, first: Any, second: Any, scores: tuple[str, str], noticed: str | None
) -> None:
    """They need not be tenths."""
    errors = error(first[0], "major", first[1]), error(second[0], "minor", second[1])
    path = mt_metrics_eval(tmp_path, *errors)
    done = import_campaign(database, path, "mt-metrics-eval", ImportFacts("wmt"), "test")
    if noticed:
        (notice,) = done.notices
        assert str(notice).startswith("errors whose cost in the file, which counts, is not that of the usual")
        assert noticed in str(notice)
        assert "segment scores that are not what their errors cost" not in str(done.not_kept)
    assert values(database, "wmt") == {("A", 0): scores[0], ("B", 0): scores[1]}
    assert sorted(results_of(database, "wmt").value.tolist()) == sorted([-first[1], -second[1]])
    for kind in ("csv", "mt-metrics-eval"):
        export_campaign(database, "wmt", kind, tmp_path / kind, "test")
        again = ImportFacts(kind, None if kind == "csv" else "mqm")
        import_campaign(database, tmp_path / kind / FILES.get(kind, "."), kind, again, "test")
        assert values(database, kind) == values(database, "wmt")


@pytest.mark.parametrize("score", [-5.0, True, "5", float("nan"), 10**400, 1e308])
def test_what_no_error_can_cost(database: Database, tmp_path: Path, score: Any) -> None:
    path = mt_metrics_eval(tmp_path, error("other", "minor", 1), error("other", "minor", score))
    found = re.escape(
        f"seg.rating, line 2: score of an error: found {score!r:.60}; allowed: its cost, a number"
    )
    with pytest.raises(InputError, match=found):
        import_campaign(database, path, "mt-metrics-eval", ImportFacts("wmt"), "test")


def test_a_taxonomy_is_for_its_own_errors(own: Database, tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    made = path.read_text()
    path.write_text(made.replace("Other", "Style"))
    with pytest.raises(InputError, match="line 1, column payload: the category of an error is one of"):
        import_campaign(own, path, "jsonl", ImportFacts("new", "mqm", taxonomy=OWN), "test")
    with pytest.raises(InputError, match="--taxonomy is for marked errors, and da has none"):
        import_campaign(own, path, "jsonl", ImportFacts("old", "da", taxonomy=OWN), "test")
    with pytest.raises(ValueError, match="follows from the weights"):  # no rater says what an error costs
        check_proposed({"spans": [{"severity": "major", "cost": 0}]}, [])
    path.write_text(made.replace('"Other"', '"Fluency", "Punctuation"'))
    import_campaign(own, path, "jsonl", ImportFacts("google", "mqm", taxonomy=GOOGLE), "test")
    done = export_campaign(own, "google", "mqm", tmp_path / "out", "test")
    assert LOSS.what not in {part.what for part in done.not_kept}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_file_of_ratings_alone_needs_the_taxonomy(own: Database, tmp_path: Path, kind: str) -> None:
    export_campaign(own, "own", kind, tmp_path / "out", "test")
    path = tmp_path / "out" / f"ratings.{kind}"
    with pytest.raises(
        InputError, match="need the campaign's taxonomy: import the folder, or give --taxonomy"
    ):
        import_campaign(own, path, kind, ImportFacts("alone"), "test")
    import_campaign(own, path, kind, ImportFacts("alone", taxonomy=OWN), "test")
    assert values(own, "alone") == VALUES
    import_campaign(own, tmp_path / "out", kind, ImportFacts("folder"), "test")
    assert values(own, "folder") == VALUES
    with pytest.raises(InputError, match=r"--taxonomy: the folder's campaign\.json"):
        import_campaign(own, tmp_path / "out", kind, ImportFacts("told", taxonomy=OWN), "test")
