"""Drafts: what a request makes of a study's outputs, their preview; what a launch registers, and the end."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filled_study import ANALYSED, HOSTILE, fill_study, lines
from rated_campaigns import rated_campaign, side_by_side
from rated_study import add_scores
from ready_campaigns import PLAIN, draft_campaign, launched_campaign
from small_campaigns import ON_BOTH, add_rater, items_of, make_campaign, rate_all
from sqlalchemy import select, update
from table_rows import NOON, all_of, assignment_row, one_of

from creamtea.access import audit
from creamtea.document.values import digest
from creamtea.errors import InputError
from creamtea.human.formats import exchange
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign
from creamtea.human.making import campaigns, launching
from creamtea.human.making.campaigns import CampaignSummary
from creamtea.human.making.preview import detectable, preview
from creamtea.human.making.settings import AttentionItem, CampaignSettings, TutorialItem, settings_of
from creamtea.human.making.texts import Documents, read_metric
from creamtea.human.media import Amount
from creamtea.human.protocols import find_protocol
from creamtea.human.rating import raters
from creamtea.human.results.ratings import load_ratings
from creamtea.stats.power import default_deviation, intraclass_correlation, power_of, worth
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign, study_nodes
from creamtea.store.tables import Campaign, Hypothesis, Item, Rating, Segment, StepRow, StudyRow


def plain(**changes: Any) -> CampaignSettings:
    return PLAIN.model_copy(update=changes)


def test_items_are_the_differing_segments_of_the_first_seed(study_database: Database) -> None:
    summary = draft_campaign(study_database, "c")
    items = items_of(study_database)
    assert (summary.items, summary.wanted, summary.ratings, summary.state) == (4, 4, 0, "draft")
    assert [item.position for item in items] == [0, 1, 2, 3]
    assert {item.segment_index: item.source for item in items}[4] == "source 4"
    assert {item.segment_index: item.outputs for item in items} == {
        0: ["ein Haus", "das Haus", "ein Haus", "Haus"],
        1: ["der Hund", "ein Hund", "Hund", ""],
        3: ["<b>rot</b>", "rot", "rot", "*rot*"],
        4: ["eins", "zwei", "drei", "vier"],
    }
    draft_campaign(study_database, "c", replace=True, systems=["entmax", "plain"])  # in the order asked for
    assert ["vier", "eins"] in [item.outputs for item in items_of(study_database)]


def test_the_seed_decides_items_and_their_order(study_database: Database) -> None:
    orders = []
    for name, seed in (("a", 1), ("b", 1), ("c", 3)):
        draft_campaign(study_database, name, seed=seed)
        orders.append([item.segment_index for item in items_of(study_database, name)])
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])


def test_settings_are_stored_complete(study_database: Database) -> None:
    draft_campaign(study_database, "c", settings=plain(items=3), instructions="*Hi*")
    row = one_of(study_database, select(Campaign))
    assert row.instructions == "*Hi*"
    assert settings_of(row.settings).model_dump(mode="json") == row.settings
    drawn = {"segments": 5, "differing": 4, "population": 4, "between": [], "chosen": 3}
    usual = {"select": "differing", "baseline": "plain", "delta": 0.1, "minutes_per_item": 1.25}
    usual["drawn"] = drawn
    assert row.settings | usual == row.settings


def test_items_can_be_limited_to_where_two_systems_differ(study_database: Database) -> None:
    draft_campaign(study_database, "c", settings=plain(differ_between=["beam", "scones"]))
    items = items_of(study_database)
    assert sorted(item.segment_index for item in items) == [0, 1, 4]
    assert all(len(item.outputs) == 4 for item in items)  # the others are rated beside them
    drawn = dict(preview(study_database, "c").facts())["drawn"]
    assert drawn.startswith("3 of 3 segments on which beam and scones differ; the test set has 5")


def test_controls_and_tutorial_items_are_stored_with_their_originals(study_database: Database) -> None:
    with study_database.transaction() as session:
        for segment in session.scalars(select(Segment)):
            segment.reference = f"reference of segment {segment.index}"
    outputs = [{"text": "Hello", "accepted": [5, 6]}, {"text": "Bye", "accepted": [1, 2.4]}]
    tutorial = TutorialItem.model_validate(
        {"source": "Guten Tag", "outputs": outputs, "explanation": "A greeting."}
    )
    settings = CampaignSettings(bad_references=1, repeats=1, tutorial=[tutorial], context=1)
    summary = draft_campaign(study_database, "c", settings=settings)
    assert summary.kinds == {"bad-reference": 1, "rated": 4, "repeat": 1, "tutorial": 1}
    assert (summary.items, summary.wanted) == (6, 6)
    first, *others = items_of(study_database)
    shown = (first.kind, first.position, first.systems, first.outputs)
    assert shown == ("tutorial", 0, [0, 1], ["Hello", "Bye"])
    assert first.guidance == {"steps": {"0": [20, 25], "1": [0, 7]}, "explanation": "A greeting."}
    by_id = {item.id: item for item in others}
    for item in others:
        if item.original_id is None:
            assert item.context == ([f"source {item.segment_index - 1}"] if item.segment_index else [])
        else:
            original = by_id[item.original_id]
            assert (original.position < item.position, original.source) == (True, item.source)
            changed = [old != new for old, new in zip(original.outputs, item.outputs, strict=True)]
            assert any(changed) == (item.kind == "bad-reference")
            assert item.degraded is None or changed[item.degraded]


def test_documents_bound_the_context(study_database: Database) -> None:
    documents = Documents(("x", "x", "x", "y", "y"))
    draft_campaign(study_database, "c", settings=plain(context=2), documents=documents)
    found = {item.segment_index: (item.document, item.context) for item in items_of(study_database)}
    assert found == {0: ("x", []), 1: ("x", ["source 0"]), 3: ("y", []), 4: ("y", ["source 3"])}


def test_ratings_of_excluded_raters_are_still_to_be_made(database: Database) -> None:
    """Their places are given to others: all of them would be more ratings than are wanted."""
    make_campaign(database, 2)
    anna = add_rater(database)
    rate_all(database, anna)
    assert campaigns.summary(database, "c").ratings == 2
    raters.exclude(database, anna, "test", "too fast")
    found = campaigns.summary(database, "c")
    assert (found.ratings, found.wanted) == (0, 2)


def test_campaigns_are_counted_together_as_alone(study_database: Database) -> None:
    draft_campaign(study_database, "a", settings=plain(repeats=1))
    taught = {"kind": "tutorial", "guidance": {"steps": {}, "explanation": ""}}
    make_campaign(study_database, [taught, {"drawn": False}, {}], name="b", k=3)
    rate_all(study_database, add_rater(study_database, campaign="b"))
    draft_campaign(study_database, "c", protocol="da")
    alone = [campaigns.summary(study_database, name) for name in "abc"]
    assert campaigns.summaries(study_database) == alone
    assert [(found.items, found.wanted, found.raters) for found in alone[:2]] == [(5, 5, 0), (2, 3, 1)]


def test_disagreement_reads_the_stored_values_with_higher_as_better(study_database: Database) -> None:
    systems = ["plain", "beam"]
    add_scores(study_database, "bleu", {"plain": [0, 0, 0, 0, 0], "beam": [1, 1, 1, 1, 50]})
    add_scores(study_database, "ter", {"plain": [90, 20], "beam": [10, 30]}, better="lower")
    settings = plain(select="disagreement", metrics=["bleu"], items=2, random_share=0.5)
    draft_campaign(study_database, "c", systems=systems, settings=settings)
    kinds = {item.kind: item for item in items_of(study_database)}
    assert set(kinds) == {"rated", "random"}
    assert 4 in {item.segment_index for item in kinds.values()}
    with study_database.session() as session:
        study = session.scalars(select(StudyRow)).one()
        read = read_metric(session, study, "test", systems, "ter")
    assert read == {0: (-90, -10), 1: (-20, -30)}


@pytest.mark.parametrize(
    ("metric", "state", "message"),
    [
        ("comet", "succeeded", "study 'jam' has no metric 'comet'; it has bleu, chrf"),
        ("chrf", "failed", r"has no values of 'chrf' on 'test' \(its step failed: no model\): see `creamtea"),
        ("chrf", "succeeded", "metric 'chrf' has no segment values of system 'plain' on 'test'"),
    ],
)
def test_a_metric_without_segment_values_is_named(
    study_database: Database, metric: str, state: str, message: str
) -> None:
    add_scores(study_database, "bleu", {"plain": [1], "beam": [1]})
    add_scores(study_database, "chrf", {"plain": [], "beam": []}, state)
    settings = plain(select="disagreement", metrics=[metric], items=2)
    with pytest.raises(InputError, match=message):
        draft_campaign(study_database, "c", systems=["plain", "beam"], settings=settings)
    assert items_of(study_database) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "Enter a campaign name"),
        ({"name": "a\nb"}, "Enter a campaign name"),
        ({"name": "x" * 301}, "Enter a campaign name"),
        ({"study": "tea"}, "no study 'tea'; known studies: jam"),
        ({"test_set": "dev"}, "study 'jam' has no test set 'dev'; it has test"),
        ({"systems": ["plain", "nvs"]}, "study 'jam' has no system 'nvs'; it has beam, entmax, plain,"),
        ({"systems": ["plain"]}, "a campaign of contrastive-da compares 2 to 60 systems, not 1: list them"),
        ({"systems": ["plain", "plain"]}, "a system is named twice in systems: name each once"),
        ({"protocol": "stars"}, "protocol 'stars': it is one of "),
        ({"protocol": "scores"}, "nobody can rate by it here"),
        ({"settings": plain(bad_references=1)}, "bad references need references, and the test set has none:"),
        ({"documents": Documents(("x", "y"))}, "documents: 2 lines, and 'test' has 5 segments: one line per"),
        ({"documents": Documents(("x", "x", "", "y", "z"))}, "documents: line 3: found '-'"),
        ({"settings": plain(select="stratified", strata=["document"])}, "sample.strata document needs docum"),
    ],
)
def test_a_wrong_request_is_one_message(study_database: Database, change: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        draft_campaign(study_database, **{"name": "c", **change})
    assert message in str(caught.value)
    assert items_of(study_database) == []


def test_outputs_that_are_not_there_yet_are_named(study_database: Database) -> None:
    with study_database.transaction() as session:
        session.get_one(StepRow, "jam/beam/7").state = "running"
    with pytest.raises(InputError, match="system 'beam' has no outputs on 'test' yet"):
        draft_campaign(study_database, "c")
    assert all_of(study_database, select(Campaign)) == []


def test_steps_of_analyses_belong_to_no_test_set_of_a_campaign(database: Database, tmp_path: Path) -> None:
    study = fill_study(database, HOSTILE + lines(36), ANALYSED)
    of_study: dict[str, Any] = {"study": "quokka", "systems": ["tapir-greedy", "dugong-greedy"]}
    with database.session() as session:
        labels = [node.labels for node in study_nodes(session, study, "decode")]
    assert any("test_set" not in one for one in labels)
    with pytest.raises(InputError, match=r"has no test set 'okapi'; it has narwhal$"):
        launched_campaign(database, "serow", **of_study, test_set="okapi")
    assert campaigns.summaries(database) == []
    launched_campaign(database, "serow", **of_study, test_set="narwhal", limit=6)
    folder = tmp_path / "exported"
    export_campaign(database, "serow", "mt-metrics-eval", folder, "test")
    assert any(path.is_file() for path in folder.rglob("*bleu*"))


def test_a_name_that_another_takes_meanwhile(
    study_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both found the name free."""
    draft_campaign(study_database, "c")
    before = items_of(study_database)
    with pytest.raises(InputError, match="campaign 'c' already exists"):
        draft_campaign(study_database, "c")
    monkeypatch.setattr(campaigns, "_free_name", lambda *given: None)
    with pytest.raises(InputError, match="campaign 'c' already exists"):
        draft_campaign(study_database, "c")
    assert len(items_of(study_database)) == len(before)


def test_a_draft_is_made_anew_and_keeps_its_raters_but_not_once_it_is_launched(
    study_database: Database,
) -> None:
    draft_campaign(study_database, "c")
    anna = add_rater(study_database)
    changed = {"systems": ["beam", "plain"], "settings": plain(items=2, baseline="plain")}
    summary = draft_campaign(study_database, "c", **changed, replace=True)
    assert (summary.items, summary.systems, summary.raters) == (2, ["beam", "plain"], 1)
    before = [item.id for item in items_of(study_database)]
    assert len(before) == 2
    assert raters.find(study_database, "c", "anna") == anna
    log = audit.read(study_database, summary.id)
    assert [entry.detail["made_anew"] for entry in log if entry.action == audit.CREATED] == [False, True]
    for change, state in ((launching.launch, "launched"), (launching.close, "closed")):
        change(study_database, "c")
        with pytest.raises(InputError, match=f"'c' is {state}, and what was registered at its launch stays"):
            draft_campaign(study_database, "c", replace=True)
    assert [item.id for item in items_of(study_database)] == before


def test_stored_settings_that_cannot_be_are_named() -> None:
    with pytest.raises(
        InputError, match=r"^settings of the campaign: items: (.|\n)*random_share(.|\n)*colour"
    ):
        settings_of({"items": 0, "random_share": "much", "colour": 1})


# ---------------------------------------------------------------- launched and closed, and what is registered


@pytest.fixture
def draft(study_database: Database) -> Database:
    draft_campaign(
        study_database,
        "c",
        systems=["beam", "plain"],
        settings=PLAIN.model_copy(update={"delta": 0.3}),
        ratings_per_item=2,
        seed=11,
        instructions="Read *both*.",
    )
    return study_database


def row_and_changes(database: Database, name: str = "c") -> tuple[Campaign, list[str]]:
    with database.session() as session:
        row = find_campaign(session, name)
        return row, launching.changes(session, row)


def test_a_launch_registers_what_was_chosen(draft: Database) -> None:
    registered = launching.launch(draft, "c", "olga")
    row, _ = row_and_changes(draft)
    assert (row.state, row.registered) == ("launched", registered)
    assert row.launched_at is not None
    content = {part: value for part, value in registered.items() if part != "digest"}
    assert registered["digest"] == digest(content)
    assert content["analysis"]["correction"].startswith("Holm")
    expected = {
        "systems": ["beam", "plain"],
        **{"baseline": "plain", "delta": 0.3, "seed": 11, "protocol": "contrastive-da", "test_set": "test"},
        "study": {"name": "jam", "number": row.study_id, "config_hash": "h"},
        "settings": row.settings,
        "instructions": digest("Read *both*."),
    }
    assert {part: registered[part] for part in expected} == expected
    assert registered["items"]["kinds"] == {"rated": 4}
    (*_, event) = audit.read(draft, row.id)
    found = (event.actor, event.action, event.detail)
    assert found == ("olga", audit.LAUNCHED, {"digest": registered["digest"]})


@ON_BOTH
def test_the_states_follow_each_other_and_what_was_registered_holds(draft: Database) -> None:
    assert row_and_changes(draft)[1] == []  # a draft has nothing registered
    with pytest.raises(InputError, match="campaign 'c' is a draft: only a launched campaign can be closed"):
        launching.close(draft, "c")
    launching.launch(draft, "c")
    add_rater(draft)
    with pytest.raises(InputError, match="campaign 'c' is launched: only a draft can be launched"):
        launching.launch(draft, "c")
    with pytest.raises(InputError, match="only a closed campaign can be opened again"):
        launching.reopen(draft, "c", "dora", "too early")
    assert row_and_changes(draft)[1] == []
    launching.close(draft, "c", reason="enough")
    row, changes = row_and_changes(draft)
    assert (row.state, changes) == ("closed", [])
    assert row.closed_at is not None
    assert audit.read(draft, row.id)[-1].reason == "enough"
    for step in (launching.launch, launching.close):
        with pytest.raises(InputError, match="campaign 'c' is closed"):
            step(draft, "c")
    with pytest.raises(InputError, match="give a reason to open campaign 'c' again"):
        launching.reopen(draft, "c", "dora", " ")
    launching.reopen(draft, "c", "dora", "a late rater")
    row, changes = row_and_changes(draft)
    assert (row.state, row.closed_at, changes) == ("launched", None, [])
    with draft.session() as session:
        assert load_ratings(session, find_campaign(session, "c")).campaign.reopened == 1
    entry = audit.read(draft, row.id)[-1]
    assert (entry.actor, entry.action, entry.reason) == ("dora", audit.REOPENED, "a late rater")


def test_there_is_nothing_to_launch_or_to_open_again(draft: Database) -> None:
    with pytest.raises(InputError, match="no campaign 'd'; known: c"):
        launching.launch(draft, "d")
    rated_campaign(draft, side_by_side([[[1], [2]]]), state="closed")
    with pytest.raises(InputError, match="was rated elsewhere"):
        launching.reopen(draft, "tasting", "dora", "why not")
    assert row_and_changes(draft, "tasting")[0].state == "closed"


@ON_BOTH
def test_of_two_launches_at_once_one_is_refused(draft: Database) -> None:
    def launch(_: int) -> str:
        try:
            return str(launching.launch(draft, "c")["digest"])
        except InputError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(launch, range(4)))
    assert sorted(len(answer) == 64 for answer in answers) == [False, False, False, True]
    log = audit.read(draft, row_and_changes(draft)[0].id)
    assert [entry.action for entry in log].count(audit.LAUNCHED) == 1


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (update(Item).where(Item.position == 1).values(weight=2.0), "items"),
        (update(Item).where(Item.position == 0).values(source="other"), "items"),
        (update(Campaign).values(ratings_per_item=3), "ratings_per_item"),
        (update(Campaign).values(systems=["plain", "beam"]), "systems"),
        (update(Campaign).values(instructions=""), "instructions"),
        (update(Campaign).values(registered={"digest": "0"}), "registration"),
    ],
)
def test_what_was_changed_behind_its_back_is_named(draft: Database, change: Any, part: str) -> None:
    launching.launch(draft, "c")
    with draft.transaction() as session:
        session.execute(change)
    assert row_and_changes(draft)[1] == [part]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_export_carries_what_was_registered(draft: Database, tmp_path: Path, kind: str) -> None:
    registered = launching.launch(draft, "c")
    exchange.export_campaign(draft, "c", kind, tmp_path / "out", "olga")
    exchange.import_campaign(draft, tmp_path / "out", kind, ImportFacts("copy"), "olga")
    copy, changes = row_and_changes(draft, "copy")
    assert (copy.study_id, copy.registered, changes) == (None, registered, [])


# ---------------------------------------------------------------- the preview: counts, hours and power


GOOD: dict[str, Any] = {"systems": ["beam", "plain", "scones"]}


TWO = {"source": "s", "outputs": [{"text": "a", "accepted": [1, 2]}, {"text": "b", "accepted": [5, 6]}]}


def test_items_and_hours(study_database: Database) -> None:
    """With an attention check after each two of a rater's six answers, of four that there are."""
    checks = [AttentionItem.model_validate({**TWO, "source": f"s{number}"}) for number in range(4)]
    practice = TutorialItem.model_validate({**TWO, "explanation": "e"})
    given = {"attention": checks, "attention_every": 2, "repeats": 2, "tutorial": [practice]}
    settings = PLAIN.model_copy(update={**given, "minutes_per_item": 3.0})
    draft_campaign(study_database, "c", ratings_per_item=2, settings=settings, **GOOD)
    found = preview(study_database, "c")
    assert found.kinds == {"rated": 4, "repeat": 2, "tutorial": 1, "attention-check": 4}
    assert (found.ratings, found.raters, found.comparisons) == (12, 2, 2)
    assert found.rater_hours == pytest.approx((12 + 2 + 2 * 3) * 3 / 60)
    assert found.hours_per_rater == pytest.approx(found.rater_hours / 2)
    assert "decide little: they find a difference of 0.1 points in" in found.doubt
    assert replace(found, power=0.8).doubt == ""
    media = Amount(2, 3 * 10**6)
    assert dict(replace(found, media=media).facts())["files"] == "2 of sources and outputs, 3.0 MB"
    draft_campaign(study_database, "usual", **GOOD)
    by_rule = replace(preview(study_database, "usual"), media=media)
    assert dict(by_rule.facts())["files"].endswith("MB; minutes per item do not count them")
    beyond = dict(replace(found, detectable=1e4).facts())["detectable"]
    assert "power): none on a scale of" in beyond
    assert (found.delta, found.written(found.delta), found.units) == (0.1, "0.1 points", 4)
    assert (found.deviation, found.deviation_from) == (default_deviation(1, 6), "")
    assert found.power == power_of(4, 0.1, found.deviation)
    launching.launch(study_database, "c")
    workload = raters.workload(study_database, add_rater(study_database))
    assert workload.minutes == pytest.approx(60 * found.hours_per_rater)


@pytest.mark.parametrize(("units", "deviation"), [(2, 1.0), (20, 0.8), (350, 0.8), (150, 14.1)])
def test_the_detectable_difference_has_a_power_of_80_percent(units: int, deviation: float) -> None:
    difference = detectable(units, deviation)
    assert difference is not None
    assert power_of(units, difference, deviation) == pytest.approx(0.8, abs=1e-6)
    assert detectable(1, deviation) is None


def test_unequal_weights_are_worth_fewer_units() -> None:
    assert worth([2.0] * 7, range(7)).effective == pytest.approx(7)
    sample = worth([1.0] * 16 + [16.0] * 4, range(20))
    assert sample.effective == sample.units == sample.documents == pytest.approx(80**2 / (16 + 4 * 256))


def test_segments_of_a_document_are_worth_less_by_the_design_effect() -> None:
    sample = worth([1.0] * 30, np.repeat(range(6), 5), intraclass=0.2)
    assert (sample.units, sample.documents) == pytest.approx((30, 6))
    assert sample.design_effect == pytest.approx(1 + 4 * 0.2)  # Kish 1965


def test_the_intraclass_correlation_is_that_of_the_simulated_documents() -> None:
    rng = np.random.default_rng(5)
    document = np.repeat(np.arange(400), rng.integers(1, 8, 400))
    columns = [rng.normal(0, 3, 400)[document] + rng.normal(0, 4, len(document)) for _ in range(3)]
    assert intraclass_correlation(columns, document) == pytest.approx(9 / 25, abs=0.03)
    assert intraclass_correlation(columns, np.arange(len(document))) is None


@pytest.mark.parametrize(
    ("protocol", "pairs", "units"),
    [("contrastive-da", "all", 4), ("da", "all", 5), ("preference", "all", 3), ("preference", "baseline", 3)],
)
def test_units_are_those_of_the_thinnest_comparison(
    study_database: Database, protocol: str, pairs: str, units: int
) -> None:
    # plain and scones share segment 0; beam is the baseline of plain and scones: they share segment 3
    settings = PLAIN.model_copy(update={"pairs": pairs, "baseline": "beam"})
    draft_campaign(study_database, "c", settings=settings, protocol=protocol, **GOOD)
    assert preview(study_database, "c").units == units


def lengthen(database: Database, segments: int) -> None:
    """More segments on which the systems differ."""
    more = range(5, segments)
    with database.transaction() as session:
        for key in session.scalars(select(Segment.step_key).distinct()).all():
            session.add_all(Segment(step_key=key, index=i, source="s", reference="", idioms=[]) for i in more)
        for key in session.scalars(select(Hypothesis.step_key).distinct()).all():
            session.add_all(
                Hypothesis(step_key=key, index=i, text=f"{key} {i}", score=0.0, length=1, selected_size=1)
                for i in more
            )


def rate_steps(database: Database, campaign: CampaignSummary, steps: np.ndarray) -> None:
    """One rater's steps (items, systems), by the items' position."""
    rater = add_rater(database, campaign=campaign.name)
    with database.transaction() as session:
        items = session.scalars(select(Item).where(Item.campaign_id == campaign.id).order_by(Item.position))
        for item, row in zip(items, steps, strict=True):
            assignment = assignment_row(item.id, rater, [[0], [1], [2]])
            session.add(assignment)
            session.flush()
            session.add_all(
                Rating(assignment_id=assignment.id, system=s, revision=1, step=int(step), created_at=NOON)
                for s, step in enumerate(row)
            )


def test_the_deviation_comes_from_an_earlier_campaign(study_database: Database) -> None:
    lengthen(study_database, 21)
    earlier = launched_campaign(study_database, "earlier", **GOOD)
    steps = np.random.default_rng(1).integers(0, 26, (earlier.items, 3))
    rate_steps(study_database, earlier, steps)
    draft_campaign(study_database, "c", **GOOD)
    found = preview(study_database, "c")
    points = 0.2 * steps  # beam, plain (the baseline), scones
    variances = [np.var(points[:, system] - points[:, 1], ddof=1) for system in (0, 2)]
    assert found.deviation_from == "earlier"
    assert found.deviation == pytest.approx(math.sqrt(np.mean(variances)))
    assert find_protocol("contrastive-da").scale.highest - find_protocol("contrastive-da").scale.lowest == 5
    draft_campaign(study_database, "other", protocol="da", **GOOD)
    assert preview(study_database, "other").deviation_from == ""


def test_few_ratings_or_none_that_differ_do_not_count(study_database: Database) -> None:
    earlier = launched_campaign(study_database, "few", **GOOD)
    rate_steps(study_database, earlier, np.arange(12).reshape(4, 3))
    lengthen(study_database, 21)
    same = launched_campaign(study_database, "same", **GOOD)
    # one step apart throughout: of differences such as 3.4 − 3.2 rounding is left
    rate_steps(study_database, same, (np.arange(same.items) % 20)[:, None] + np.arange(3))
    draft_campaign(study_database, "c", **GOOD)
    assert preview(study_database, "c").deviation_from == ""


def test_a_campaign_of_one_system_compares_nothing(study_database: Database) -> None:
    """Ratings made elsewhere may be of one system."""
    draft_campaign(study_database, "c", protocol="da", **GOOD)
    with study_database.transaction() as session:
        row = find_campaign(session, "c")
        row.systems = ["plain"]
        for item in session.scalars(select(Item)):
            item.systems, item.outputs = [0], item.outputs[:1]
    found = preview(study_database, "c")
    assert (found.comparisons, found.units, found.power, found.detectable) == (0, 0.0, None, None)
    assert "their power is unknown, because a test needs ratings of at least two segments" in found.doubt
    assert dict(found.facts())["power"] in found.doubt
    assert "equivalence" not in dict(found.facts())


@pytest.mark.parametrize("protocol", ["contrastive-da", "da", "preference"])
def test_an_adaptive_design_is_worth_about_what_a_balanced_one_is(
    study_database: Database, protocol: str
) -> None:
    lengthen(study_database, 160)
    found = {}
    for design in ("balanced", "adaptive"):
        settings = PLAIN.model_copy(update={"design": design, "systems_per_page": 2, "select": "differing"})
        draft_campaign(study_database, design, settings=settings, protocol=protocol, **GOOD)
        found[design] = preview(study_database, design)
    balanced, adaptive = found["balanced"], found["adaptive"]
    assert adaptive.ratings == pytest.approx(balanced.ratings, rel=0.15)
    assert adaptive.units == pytest.approx(balanced.units, rel=0.15)
    assert adaptive.power == pytest.approx(balanced.power, abs=0.1)


def test_pages_that_an_adaptive_design_passes_over_are_not_counted(study_database: Database) -> None:
    lengthen(study_database, 20)
    documents = Documents(tuple(f"d{segment // 2}" for segment in range(20)))
    for design in ("balanced", "adaptive"):
        few = {"design": design, "systems_per_page": 2, "unit": "document", "segments_per_page": 2}
        fields = {"settings": PLAIN.model_copy(update=few), "protocol": "da", "documents": documents}
        draft_campaign(study_database, design, **fields, **GOOD)
        assert preview(study_database, design).pages == 19, design
