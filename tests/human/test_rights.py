"""Role × action: this file is the table, written a second time by hand."""

import pytest

from creamtea.access import rights
from creamtea.access.sessions import Identity

MINE, OTHER = 7, 8
IDENTITIES = {
    "nobody": None,
    "rater": Identity(1, "rater", rater_id=3, campaign_id=MINE),
    "reader": Identity(1, "reader"),
    "one report": Identity(1, "reader", study_id=MINE),
    "one campaign": Identity(1, "organiser", campaign_id=MINE),
    "organiser": Identity(1, "organiser"),
    "rater without rater": Identity(1, "rater"),
    "viewer": Identity(1, "reader", campaign_id=MINE),
    "reader with a campaign and a study": Identity(1, "reader", campaign_id=MINE, study_id=MINE),
}
# action: who may in their own campaign; who may in any other, and where no campaign is named
TABLE = {
    rights.RATE: ({"rater"}, set()),
    rights.READ_STUDIES: ({"reader", "organiser"}, {"reader", "organiser"}),
    rights.READ_REPORT: ({"reader", "organiser"}, {"reader", "organiser"}),  # see the test below
    rights.SUBMIT_STUDIES: ({"organiser"}, {"organiser"}),
    rights.CONTROL_STUDIES: ({"organiser"}, {"organiser"}),
    rights.SHARE_REPORTS: ({"organiser"}, {"organiser"}),
    rights.READ_LOGS: ({"organiser"}, {"organiser"}),
    rights.SEE_MEDIA: ({"rater", "viewer", "one campaign", "organiser"}, {"organiser"}),
    rights.SEE_CAMPAIGN: ({"viewer", "one campaign", "organiser"}, {"organiser"}),
    rights.CREATE_CAMPAIGN: ({"organiser"}, {"organiser"}),
    rights.RUN_CAMPAIGN: ({"one campaign", "organiser"}, {"organiser"}),
    rights.MANAGE_RATERS: ({"one campaign", "organiser"}, {"organiser"}),
    rights.SEE_RATERS: ({"one campaign", "organiser"}, {"organiser"}),
    rights.READ_LOG: ({"one campaign", "organiser"}, {"organiser"}),
    rights.EXPORT_RATINGS: ({"one campaign", "organiser"}, {"organiser"}),
    rights.IMPORT_RATINGS: ({"organiser"}, {"organiser"}),
}


def test_the_table_is_complete() -> None:
    assert set(TABLE) == set(rights.RIGHTS)


@pytest.mark.parametrize("action", TABLE)
@pytest.mark.parametrize("who", IDENTITIES)
def test_each_role_may_what_the_table_says(who: str, action: str) -> None:
    own, elsewhere = TABLE[action]
    identity = IDENTITIES[who]
    assert rights.may(identity, action, MINE) == (who in own)
    assert rights.may(identity, action, OTHER) == (who in elsewhere)
    assert rights.may(identity, action) == (who in elsewhere)


@pytest.mark.parametrize("action", TABLE)
def test_a_reader_of_one_report_may_read_that_report_and_nothing_else(action: str) -> None:
    who = IDENTITIES["one report"]
    assert rights.may(who, action, study_id=MINE) == (action == rights.READ_REPORT)
    assert not rights.may(who, action, study_id=OTHER)


def test_what_is_of_a_campaign_is_not_of_the_study_with_its_number() -> None:
    assert not rights.may(IDENTITIES["one campaign"], rights.READ_REPORT, study_id=MINE)
    assert not rights.may(IDENTITIES["rater"], rights.READ_REPORT, study_id=MINE)
    assert not rights.may(IDENTITIES["one report"], rights.RATE, MINE)


def test_an_unknown_action_is_an_error() -> None:
    with pytest.raises(KeyError):
        rights.may(IDENTITIES["organiser"], "make tea")
