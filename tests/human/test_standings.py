"""How comparisons stand before the end."""

from small_campaigns import add_rater, make_campaign, work_for

from creamtea.human import rating as assignment
from creamtea.human.results.ratings import load_ratings, standings
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign


def test_items_of_weight_0_tell_nothing_before_the_end(database: Database) -> None:
    """They are rated like others."""
    make_campaign(database, [{"weight": float(number != 1)} for number in range(12)], systems=2)
    rater = add_rater(database)
    for number in range(11):
        work = work_for(database, rater)
        assignment.submit(database, rater, work.assignment_id, [number, 10])
    with database.session() as session:
        ratings = load_ratings(session, find_campaign(session, "c"))
        (found,) = standings(session, ratings, 0, 4.0)
    assert (found.complete, found.planned) == (10, 11)
