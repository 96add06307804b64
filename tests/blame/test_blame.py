"""`creamtea blame` on a small trained study: the labels agree with what was done to the systems."""

import json
from dataclasses import replace

import pytest
from blame_by_rule import REFERENCE, Disturbed, campaign_by_rule, disturbed, proved
from command_line import Run
from sqlalchemy import select, update
from sqlalchemy.orm import Session
from table_rows import all_of
from trained_study import SEARCHES, Trained

from creamtea.blame.gathering import gather
from creamtea.blame.labels import Evidence, Origin, label, marks_of
from creamtea.errors import InputError
from creamtea.human.making.launching import registration
from creamtea.human.protocols import find_protocol
from creamtea.human.results.ratings import load_ratings
from creamtea.report.human.build import build_human
from creamtea.report.model import Row, Texts
from creamtea.store.queries import find_study, study_nodes
from creamtea.store.tables import Assignment, Blame, Campaign, Hypothesis, Item, Rater, Rating

pytestmark = pytest.mark.slow


def share(row: Row, origin: str) -> float:
    value = row.cells[origin].value
    assert value is not None
    return value


def some_errors(trained: Trained) -> list[Disturbed]:
    """Four outputs of greedy search that a beam mends, and that the model prefers mended."""
    differing = disturbed(trained.database, "tiny", "test", "greedy", "beam", True)
    found = [one for one in differing if one.better]  # nobody corrects a translation into nothing
    assert len(found) >= 4
    return found[:4]


def campaign_named(session: Session, name: str) -> Campaign:
    return session.scalars(select(Campaign).where(Campaign.name == name)).one()


# ---------------------------------------------------------------- the labels agree with what was done


@pytest.mark.parametrize(
    ("system", "better", "higher", "origin", "at_least"),
    [
        ("greedy", "beam", True, "search", 1.0),  # the better output scores higher: the model prefers it
        ("greedy", "exact", True, "search", 1.0),
        ("nvs", "greedy", False, "selection", 0.95),
        ("lexicon", "greedy", False, "selection", 0.95),
        ("beam", REFERENCE, False, "model", 0.9),
    ],
)
def test_the_origin_is_what_was_done_to_the_system(
    trained: Trained, system: str, better: str, higher: bool, origin: str, at_least: float
) -> None:
    row = trained.shares(system, better, higher)
    assert share(row, origin) >= at_least
    if origin == "selection":
        assert share(row, "model") <= 0.05
    elif origin == "model":
        assert row.cells["selection"].state == "absent", "it allows every subword"
        assert row.cells["model"].low < share(row, "model")
    elif better == "exact":
        assert 0.0 < share(row, "proved") <= 1.0


def test_proofs_of_exact_search_are_stored(trained: Trained) -> None:
    found = [len(proved(trained.database, trained.store, "tiny", "test", one)) for one in ("exact", "beam")]
    assert found == [40, 0]


def test_the_labels_follow_from_the_scores_alone(trained: Trained) -> None:
    """The oracle is the whole output: where no candidate scores higher, every mark is the model's."""
    trained.shares("beam", REFERENCE)
    name = f"beam against {REFERENCE}"
    with trained.database.session() as session:
        campaign = campaign_named(session, name)
        marked = marks_of(session, load_ratings(session, campaign))
        rows = session.scalars(select(Blame).where(Blame.campaign_id == campaign.id)).all()
        for row in rows:
            evidence = Evidence.of(row.evidence)
            output = evidence.named("output")
            assert output is not None
            if output is max(evidence.candidates, key=lambda candidate: candidate.rank):
                found = {
                    label(evidence, mark, [REFERENCE]).origin
                    for mark in marked.marks[row.segment_index, row.system]
                }
                assert found == {Origin.MODEL}


# ---------------------------------------------------------------- evidence


def test_scores_of_evidence_are_those_of_the_decoding(trained: Trained) -> None:
    """Forced scores against those that the searches gave in their steps."""
    trained.shares("greedy", "beam", higher=True)
    with trained.database.session() as session:
        nodes = study_nodes(session, find_study(session, "tiny").id, "decode")
        keys = {node.labels["system"]: node.key for node in nodes}
        rows = session.scalars(select(Blame).where(Blame.step_key == keys["greedy"])).all()
        compared = 0
        for row in rows:
            evidence = Evidence.of(row.evidence)
            assert row.evidence["reproduced"]
            assert evidence.named("model scones") is not None
            assert evidence.named("full vocabulary") is None
            for name, system in (("output", "greedy"), ("beam 8", "beam"), ("exact search", "exact")):
                stored = session.get_one(Hypothesis, (keys[system], row.segment_index))
                found = evidence.named(name)
                assert found.text == stored.text
                if stored.length is not None and stored.length < 12:  # shorter than every length limit
                    assert found.rank == pytest.approx(stored.score, abs=1e-3)
                    compared += system != "exact"
        assert compared >= 10


def test_a_run_continues_where_it_was_and_forgets_what_is_not_marked(trained: Trained) -> None:
    name = "continued"
    found = some_errors(trained)
    campaign_by_rule(trained.database, "tiny", "test", name, ["greedy", "beam"], found)

    class Interrupted(Exception):
        pass

    def interrupt(done: int, total: int, system: str) -> None:
        if done == 2:
            raise Interrupted

    with pytest.raises(Interrupted):
        gather(trained.database, trained.store, "tiny", name, SEARCHES, progress=interrupt)
    again = gather(trained.database, trained.store, "tiny", name, SEARCHES)
    assert (again.before, again.now) == (2, len(found) - 2)
    assert gather(trained.database, trained.store, "tiny", name, SEARCHES).now == 0
    wider = replace(SEARCHES, beam=4)
    assert gather(trained.database, trained.store, "tiny", name, wider).now == len(found)
    with trained.database.transaction() as session:
        campaign = campaign_named(session, name)
        rater = session.scalars(select(Rater).where(Rater.campaign_id == campaign.id)).one()
        rater.excluded_at = trained.database.now(session)
    gather(trained.database, trained.store, "tiny", name, wider)
    assert all_of(trained.database, select(Blame).where(Blame.campaign_id == campaign.id)) == []


def test_the_command_and_the_report(trained: Trained, run: Run) -> None:
    found = disturbed(trained.database, "tiny", "test", "nvs", "greedy", False)
    campaign_by_rule(trained.database, "tiny", "test", "shown", ["nvs", "greedy"], found)
    code, said, told = run("blame", "tiny", "shown", "--beam", "8", "--states", "20000")
    assert code == 0
    assert said.startswith("nvs: ")
    assert f"{len(found)} outputs analysed, 0 earlier" in told
    facts = json.loads(run("blame", "1", "shown", "--beam", "8", "--states", "20000", "--json")[1])
    assert (facts["now"], facts["before"]) == (0, len(found))
    report = build_human(trained.database, "shown")
    repairs = report.table("repairs").rows[0].cells
    titles = {column.title: repairs[column.key].value for column in report.table("repairs").columns}
    assert titles["full vocabulary: mended"] == 1.0
    assert {"beam 8: gone", "exact search: gone", "model scones: mended"} <= titles.keys()
    (texts,) = (
        block for _, block in report.walk() if isinstance(block, Texts) and block.key == "origin_examples"
    )
    labels = [passage.label for passage in texts.entries[0].passages]
    assert [word.split(",")[0].split(":")[0] for word in labels[:5]] == [
        *("source", "output", "marked", "needed", "better")
    ]
    assert texts.folded
    for format_ in ("--markdown", "--json"):
        assert run("campaign", "report", "shown", format_)[0] == 0


def test_outputs_that_the_study_did_not_make(trained: Trained) -> None:
    found = some_errors(trained)
    other = [replace(one, output=f"{one.output} anders") for one in found]
    for name, outputs in (("elsewhere", other), ("partly", [*found[1:], other[0]])):
        campaign_by_rule(trained.database, "tiny", "test", name, ["greedy", "beam"], outputs)
    gathered = gather(trained.database, trained.store, "tiny", "partly", SEARCHES)
    assert gathered.others == {"greedy": 1}
    for study, campaign, systems, words in (
        ("tiny", "elsewhere", (), "none of the outputs"),
        ("tiny", "nobody", (), "no campaign 'nobody'"),
        ("tinny", "partly", (), "no study 'tinny'"),
        ("tiny", "partly", ["nobody"], "--system nobody"),
    ):
        with pytest.raises(InputError, match=words):
            gather(trained.database, trained.store, study, campaign, SEARCHES, systems)


def test_what_raters_corrected(trained: Trained) -> None:
    """Post-edits of greedy outputs into the better ones of a beam."""
    found = some_errors(trained)
    campaign_by_rule(trained.database, "tiny", "test", "edited", ["greedy"], found)
    better = {one.index: one.better for one in found}
    with trained.database.transaction() as session:
        campaign = campaign_named(session, "edited")
        campaign.protocol = "post-edit"
        rated = select(Rating, Item).join(Assignment, Assignment.id == Rating.assignment_id)
        for rating, item in session.execute(
            rated.join(Item, Item.id == Assignment.item_id).where(Item.campaign_id == campaign.id)
        ):
            answer = {"text": better[item.segment_index]}
            scored = find_protocol("post-edit").read_answer(answer, item.outputs[0])
            rating.step, rating.payload = scored.step, scored.payload
        session.flush()
        campaign.registered = registration(session, campaign)
    gather(trained.database, trained.store, "tiny", "edited", SEARCHES)
    (row,) = build_human(trained.database, "edited").table("origins").rows
    assert share(row, "search") == 1.0


def test_a_reference_that_raters_saw_is_a_better_translation(trained: Trained) -> None:
    found = some_errors(trained)
    campaign_by_rule(trained.database, "tiny", "test", "referred", ["greedy"], found)
    better = {one.index: one.better for one in found}
    with trained.database.transaction() as session:
        for item in session.scalars(select(Item).join(Campaign).where(Campaign.name == "referred")):
            item.references = [better[item.segment_index]]
    gather(trained.database, trained.store, "tiny", "referred", SEARCHES)
    (row,) = build_human(trained.database, "referred").table("origins").rows
    assert share(row, "search") >= 0.95  # it is nearly always the closest


def test_low_scores_where_nothing_is_marked(trained: Trained) -> None:
    found = some_errors(trained)
    campaign_by_rule(trained.database, "tiny", "test", "scored", ["greedy", "beam"], found)
    with trained.database.transaction() as session:
        campaign = campaign_named(session, "scored")
        campaign.protocol = "da"
        items = select(Item.id).where(Item.campaign_id == campaign.id)
        assignments = select(Assignment.id).where(Assignment.item_id.in_(items))
        session.execute(update(Rating).where(Rating.assignment_id.in_(assignments)).values(payload=None))
        session.flush()
        campaign.registered = registration(session, campaign)
    with pytest.raises(InputError, match="--below"):
        gather(trained.database, trained.store, "tiny", "scored", SEARCHES)
    gather(trained.database, trained.store, "tiny", "scored", replace(SEARCHES, below=60.0))
    (row,) = build_human(trained.database, "scored").table("origins").rows
    assert row.cells["marks"].value == len(found)
    assert share(row, "search") == 1.0
