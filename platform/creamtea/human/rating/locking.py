"""The campaign's lock, and who may be given items or store scores.

Every transaction that gives out or takes back a place starts with the lock of its campaign's row
(`FOR NO KEY UPDATE` on PostgreSQL; on SQLite a write transaction holds the whole file), so that what it
then counts stays true until it commits. Moments come from the database's clock.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import Select, bindparam, select
from sqlalchemy.orm import Session

from creamtea.errors import InputError
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.rating.model import ConsentMissing, RatingRefused
from creamtea.store.tables import Campaign, Rater

_WHY_NOT = {
    "draft": "this evaluation has not begun",
    "closed": "this evaluation is closed; what you saved is kept",
}


def lock_campaign(session: Session, rater_id: int) -> Campaign:
    """Serialise the campaign's transactions: this must be the first statement of the transaction."""
    return campaign_of(session, rater_id, lock=True)


def campaign_of(session: Session, rater_id: int, *, lock: bool = False) -> Campaign:
    """The rater's campaign; without `lock` as a session that only reads sees it."""
    campaign = session.scalar(_campaign_of(lock), {"rater": rater_id})
    if campaign is None:
        raise RatingRefused("this link is no longer valid; ask for a new one")
    return campaign


@cache
def _campaign_of(lock: bool) -> Select[Campaign]:
    own = select(Rater.campaign_id).where(Rater.id == bindparam("rater")).scalar_subquery()
    wanted = select(Campaign).where(Campaign.id == own)
    return wanted.with_for_update(key_share=True) if lock else wanted


def protocol_of(campaign: Campaign) -> Protocol:
    """RatingRefused where the plug-in with the campaign's protocol is missing."""
    try:
        return find_protocol(campaign.protocol, campaign.settings)
    except InputError:
        raise RatingRefused("this evaluation cannot be shown at the moment; tell the organiser") from None


def check_takes_part(campaign: Campaign, rater: Rater) -> None:
    """RatingRefused unless the campaign takes ratings and the organiser wants this rater's."""
    if campaign.state != "launched":
        raise RatingRefused(_WHY_NOT[campaign.state])
    if rater.forgotten_at is not None:
        raise RatingRefused("you have left this evaluation; ask the organiser for a new link")
    if rater.excluded_at is not None:
        raise RatingRefused("the organiser has ended your part here; what you saved is kept")


def active_rater(session: Session, campaign: Campaign, rater_id: int) -> Rater:
    """The rater, who takes part and has agreed to; RatingRefused otherwise. Read it after the lock."""
    rater = session.get_one(Rater, rater_id)
    check_takes_part(campaign, rater)
    if rater.consented_at is None:
        raise ConsentMissing
    return rater
