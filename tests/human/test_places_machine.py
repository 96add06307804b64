"""Places: no order of acts and no process that dies (bench/simulated_raters.py) breaks their promises."""

from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import FIXTURES_ARE_SHARED
from simulated_raters import PROTOCOLS, Trouble, compare, simulate
from small_campaigns import add_rater, make_campaign, rate, rate_all
from sqlalchemy import delete, select
from table_rows import NOON, assignment_row

from creamtea.human import rating as assignment
from creamtea.human.rating import RatingRefused, raters
from creamtea.human.rating.places import finished_raters, load_outlook
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Assignment, AuditEvent, Campaign, Item, Rater, Rating

PEOPLE, K = 4, 2
CHECK = {"kind": "attention-check", "guidance": {"steps": {}, "spans": {}, "above": [], "warning": None}}
ITEMS = [{"kind": "tutorial"}, {}, {}, {}, {"kind": "repeat", "original": 1}, CHECK]
PAGES = [
    {"kind": "tutorial"},
    *({"page": 1, "document": "d0"}, {"page": 1, "document": "d0"}),
    *({"page": 3, "document": "d0"}, {"page": 3, "document": "d0"}),
    {"page": 5, "document": "d1"},
    *({"page": 6, "kind": "repeat", "original": 1}, {"page": 6, "kind": "repeat", "original": 2}),
    CHECK,
]
ACTS = ("draw", "draw", "rate", "rate", "revise", "skip", "lapse", "exclude", "include")


class People:
    """Raters at one campaign, and what each of them was last given."""

    def __init__(self, database: Database, unit: str) -> None:
        self.database = database
        self.campaign = make_campaign(
            database, ITEMS if unit == "segment" else PAGES, k=K, unit=unit, attention_every=2
        )
        self.sizes = Counter(item["page"] for item in PAGES if "page" in item and unit == "document")
        self.ids = [add_rater(database, f"r{number}") for number in range(PEOPLE)]
        self.excluded: set[int] = set()
        self.returned = False  # somebody excluded was included again
        self.before: dict[int, list[str]] = {}

    def act(self, person: int, act: str) -> None:
        rater = self.ids[person]
        with suppress(RatingRefused):
            if act in ("exclude", "include"):
                self._decide(rater, act)
            elif act == "lapse":
                with self.database.transaction() as session:
                    for row in session.scalars(select(Assignment).where(Assignment.rater_id == rater)):
                        row.lease_until -= timedelta(hours=3)
            elif act == "revise":
                for one in assignment.earlier(self.database, rater)[:1]:
                    work = assignment.reopen(self.database, rater, one.assignment_id)
                    steps = [5] * len(work.outputs)
                    assignment.submit(self.database, rater, work.assignment_id, steps, work.revision)
            elif (work := assignment.next_item(self.database, rater)) is not None:
                if act == "rate":
                    rate(self.database, rater, work)
                elif act == "skip":
                    assignment.skip(self.database, rater, work.assignment_id, "unclear")

    def _decide(self, rater: int, act: str) -> None:
        if (act == "exclude") == (rater in self.excluded):
            return
        if act == "exclude":
            raters.exclude(self.database, rater, "test", "a reason")
            self.excluded.add(rater)
            self.before[rater] = self.rows(rater)
        else:
            raters.include(self.database, rater, "test", "a reason")
            self.excluded.discard(rater)
            self.returned = True

    def rows(self, rater: int) -> list[str]:
        with self.database.session() as session:
            wanted = select(Assignment.id, Assignment.submitted_at, Assignment.skipped_at, Rating.step)
            wanted = wanted.outerjoin(Rating, Rating.assignment_id == Assignment.id)
            return sorted(map(repr, session.execute(wanted.where(Assignment.rater_id == rater))))

    def check(self) -> None:
        with self.database.session() as session:
            now = self.database.now(session)
            rows = session.execute(
                select(Assignment, Item).join(Item, Item.id == Assignment.item_id).order_by(Assignment.id)
            ).all()
            rated = set(session.scalars(select(Rating.assignment_id).distinct()))
        assert len({(a.item_id, a.rater_id) for a, _ in rows}) == len(rows)
        assert rated == {a.id for a, _ in rows if a.submitted_at is not None}
        assert not any(a.skipped_at is not None and a.submitted_at is not None for a, _ in rows)
        pages: dict[tuple[int, int], list[tuple[object, ...]]] = {}
        for a, item in rows:
            state = (a.submitted_at, a.skipped_at, a.lease_until, a.created_at)
            pages.setdefault((a.rater_id, item.page or item.position), []).append(state)
        for (_, page), states in pages.items():  # whole, and of one state
            assert (len(states), len(set(states))) == (self.sizes.get(page, 1), 1)
        submitted = {(a.rater_id, a.item_id) for a, _ in rows if a.submitted_at is not None}
        tutorials = {a.rater_id for a, item in rows if item.kind == "tutorial" and a.submitted_at is not None}
        assert all(a.rater_id in tutorials for a, item in rows if item.kind != "tutorial")
        assert all((a.rater_id, item.original_id) in submitted for a, item in rows if item.original_id)
        if not self.returned:
            for item_id in {item.id for _, item in rows if item.kind == "rated"}:
                own = [a for a, _ in rows if a.item_id == item_id and a.rater_id not in self.excluded]
                takers = [a for a in own if a.skipped_at is None and (a.submitted_at or a.lease_until > now)]
                assert len(takers) <= K
        for item in {item for _, item in rows if item.kind in ("rated", "repeat")}:
            place = item.original_id or item.id
            answers = [a for a, _ in rows if a.item_id == place and a.rater_id not in self.excluded]
            assert item.full == (sum(a.submitted_at is not None for a in answers) >= K)
        for rater in self.excluded:
            assert self.rows(rater) == self.before[rater]

    def check_who_is_finished(self) -> None:
        """What is said of all raters at once is what the outlook of each says."""
        with self.database.session() as session:
            campaign, now = session.get_one(Campaign, self.campaign), self.database.now(session)
            found = finished_raters(session, campaign, now)
            for rater in self.ids:
                ahead = load_outlook(session, campaign, session.get_one(Rater, rater), now)
                to_come = ahead.tutorial or ahead.due or ahead.shortlist or ahead.later or ahead.at_most
                begun = any(not past.submitted and not past.skipped for past in ahead.past)
                over = not to_come and not begun and ahead.done(tutorial=False) > 0
                assert (rater in found) == over, rater

    def finish(self) -> None:
        """Everybody who may goes on until nothing is left; then no place is free that somebody could take."""
        for _ in range(2):  # the second round takes what the first one's leases held
            for rater in set(self.ids) - self.excluded:
                rate_all(self.database, rater)
        with self.database.session() as session:
            rows = session.execute(select(Assignment.item_id, Assignment.rater_id, Assignment.submitted_at))
            had, counts = set(), {}
            for item_id, rater_id, at in rows:
                had.add((item_id, rater_id))
                if at is not None and rater_id not in self.excluded:
                    counts[item_id] = counts.get(item_id, 0) + 1
            for item_id in session.scalars(select(Item.id).where(Item.kind == "rated")):
                free = [r for r in self.ids if r not in self.excluded and (item_id, r) not in had]
                assert counts.get(item_id, 0) >= K or not free


STEPS = st.lists(st.tuples(st.integers(0, PEOPLE - 1), st.sampled_from(ACTS)), max_size=20)


@pytest.mark.slow
@settings(max_examples=8, suppress_health_check=FIXTURES_ARE_SHARED)
@given(STEPS, st.sampled_from(["segment", "document"]))
def test_places_are_taken_given_back_and_never_given_twice(
    database: Database, steps: list[tuple[int, str]], unit: str
) -> None:
    with database.transaction() as session:  # the same database for each example
        for table in (Rating, Assignment, AuditEvent, Rater, Item, Campaign):
            session.execute(delete(table))
    people = People(database, unit)
    for person, act in steps:
        people.act(person, act)
        people.check()
        people.check_who_is_finished()
    people.finish()
    people.check()
    people.check_who_is_finished()


# ---------------------------------------------------------------- raters as processes that die


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "processes"), [(PROTOCOLS[0], 6), (PROTOCOLS[1], 2)])
def test_nothing_is_lost_or_doubled_whatever_happens_to_the_raters(
    empty_url: str, tmp_path: Path, protocol: str, processes: int
) -> None:
    trouble = Trouble(think=0.02, deaths=1, lost=0.15, doubled=0.3)
    outcome = simulate(
        empty_url,
        tmp_path / "journals",
        raters=6,
        items=12,
        k=3,
        trouble=trouble,
        protocol=protocol,
        processes=processes,
    )
    assert outcome.right, outcome
    assert outcome.items == 12
    assert outcome.kills >= processes // 2
    assert outcome.lost_connections >= 3
    # an answer of each of its raters may have been stored by a process that died before it was told
    assert 36 - outcome.kills * 6 // processes <= outcome.acknowledged <= 36


def test_the_comparison_sees_what_is_wrong(sqlite_url: str) -> None:
    from simulated_raters import fill

    database = open_database(sqlite_url)
    (rater,) = fill(database, raters=1, items=2, k=1)
    with database.transaction() as session:
        for item in (1, 2):
            answered = {} if item == 1 else {"submitted_at": None}
            session.add(assignment_row(item, rater, [[0], [1], [2], [3]], **answered))
            session.flush()
        session.add_all(
            Rating(assignment_id=1, system=system, revision=1, step=system, created_at=NOON)
            for system in range(3)
        )
    journal = [
        {"what": "sent", "assignment": 1, "answers": [0, 1, 2, 3]},
        {"what": "saved", "assignment": 1, "steps": {"0": 0, "1": 1, "2": 2, "3": 3}},
    ]
    outcome = compare(database, journal, k=1)
    assert not outcome.right
    assert outcome.items_without_k_raters == 1
    assert (outcome.lost_answers, outcome.doubled_answers, outcome.unknown_answers) == (1, 1, 1)
    database.close()
