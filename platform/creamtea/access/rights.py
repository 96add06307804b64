"""Who may do what: one table of action × role. Pages and commands ask `may` and nothing else."""

from __future__ import annotations

from creamtea.access.sessions import Identity

RATE = "rate items"
READ_STUDIES = "read all studies and their reports"
READ_REPORT = "read one study's report"
SUBMIT_STUDIES = "submit studies"
CONTROL_STUDIES = "cancel and retry studies"
SHARE_REPORTS = "make and revoke links to one report"
READ_LOGS = "read the logs of steps"
SEE_MEDIA = "see and hear the files beside a campaign's sources"
SEE_CAMPAIGN = "see a campaign's progress and texts"
CREATE_CAMPAIGN = "create a campaign"
RUN_CAMPAIGN = "preview, launch and close a campaign"
MANAGE_RATERS = "add, link, exclude, include and forget raters"
SEE_RATERS = "see raters' names and reports"
READ_LOG = "read a campaign's log"
EXPORT_RATINGS = "export a campaign's ratings"
IMPORT_RATINGS = "import ratings"

# standings: a role, narrowed by what its token is restricted to
NOBODY = "nobody"
RATER = "rater"
READER = "reader"
ONE_REPORT = "reader of one report"
ONE_CAMPAIGN = "organiser of one campaign"
ORGANISER = "organiser"
VIEWER = "viewer of one campaign"
OF_ONE_CAMPAIGN = (ONE_CAMPAIGN, VIEWER)

OWN, ANY = "own", "any"  # OWN: only in the token's campaign or study
OF_READERS = {READER: ANY, ORGANISER: ANY}
OF_ORGANISERS = {ONE_CAMPAIGN: OWN, ORGANISER: ANY}

# a standing that an action does not name may not do it
RIGHTS: dict[str, dict[str, str]] = {
    RATE: {RATER: OWN},
    READ_STUDIES: OF_READERS,
    READ_REPORT: {ONE_REPORT: OWN, **OF_READERS},
    SUBMIT_STUDIES: {ORGANISER: ANY},
    CONTROL_STUDIES: {ORGANISER: ANY},
    SHARE_REPORTS: {ORGANISER: ANY},
    READ_LOGS: {ORGANISER: ANY},
    SEE_MEDIA: {RATER: OWN, VIEWER: OWN, **OF_ORGANISERS},
    SEE_CAMPAIGN: {VIEWER: OWN, **OF_ORGANISERS},
    CREATE_CAMPAIGN: {ORGANISER: ANY},
    RUN_CAMPAIGN: OF_ORGANISERS,
    MANAGE_RATERS: OF_ORGANISERS,
    SEE_RATERS: OF_ORGANISERS,
    READ_LOG: OF_ORGANISERS,
    EXPORT_RATINGS: OF_ORGANISERS,
    IMPORT_RATINGS: {ORGANISER: ANY},
}


def standing(identity: Identity | None) -> str:
    """Return the standing of an identity: the column of the table that applies to it."""
    if identity is None:
        return NOBODY
    if identity.role == "rater":
        return RATER if identity.rater_id is not None else NOBODY
    if identity.role == "organiser":
        return ORGANISER if identity.campaign_id is None else ONE_CAMPAIGN
    if identity.role != "reader" or None not in (identity.campaign_id, identity.study_id):
        return NOBODY  # no link is made for a campaign and a study
    if identity.campaign_id is not None:
        return VIEWER
    return READER if identity.study_id is None else ONE_REPORT


def may(
    identity: Identity | None, action: str, campaign_id: int | None = None, *, study_id: int | None = None
) -> bool:
    """Return True if this identity may do this, in the given campaign or with the given study.

    KeyError for an action that the table does not know.
    """
    right = RIGHTS[action].get(standing(identity))
    if right == OWN:
        return identity is not None and (
            (campaign_id is not None and identity.campaign_id == campaign_id)
            or (study_id is not None and identity.study_id == study_id)
        )
    return right == ANY
