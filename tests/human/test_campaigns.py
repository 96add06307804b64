"""Drafts, what a request makes of a study's outputs; launched and closed campaigns, what is registered."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from filled_study import ANALYSED, HOSTILE, fill_study, lines
from rated_campaigns import rated_campaign, side_by_side
from rated_study import add_scores
from ready_campaigns import PLAIN, draft_campaign, launched_campaign
from small_campaigns import ON_BOTH, add_rater, items_of, make_campaign, rate_all
from sqlalchemy import select, update
from table_rows import all_of, one_of

from creamtea.access import audit
from creamtea.document.values import digest
from creamtea.errors import InputError
from creamtea.human.formats import exchange
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign
from creamtea.human.making import campaigns, launching
from creamtea.human.making.preview import preview
from creamtea.human.making.settings import CampaignSettings, TutorialItem, settings_of
from creamtea.human.making.texts import Documents, read_metric
from creamtea.human.rating import raters
from creamtea.human.results.ratings import load_ratings
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign, study_nodes
from creamtea.store.tables import Campaign, Item, Segment, StepRow, StudyRow


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
