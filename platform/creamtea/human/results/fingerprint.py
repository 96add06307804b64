"""Whether what is known of a campaign is still that which something was computed of."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from creamtea.document.canonical import digest
from creamtea.store.tables import Assignment, Blame, Campaign, Item, Rater, Rating


def fingerprint(session: Session, campaign_id: int) -> tuple[Any, ...]:
    """What changes whenever a campaign's counting ratings do, or the evidence of where errors come from: a
    key for what was computed of them."""
    campaign = session.execute(
        select(Campaign.state, Campaign.created_at).where(Campaign.id == campaign_id)
    ).first()
    excluded = session.scalars(
        select(Rater.id)
        .where(Rater.campaign_id == campaign_id, Rater.excluded_at.is_not(None))
        .order_by(Rater.id)
    )
    of_campaign = (
        select(func.count(Assignment.submitted_at), func.count(Assignment.skipped_at))
        .join(Item, Item.id == Assignment.item_id)
        .where(Item.campaign_id == campaign_id)
    )
    newest = select(func.max(Rating.id))  # of any campaign: an index tells it at once
    evidence = session.scalars(select(Blame.key).where(Blame.campaign_id == campaign_id).order_by(Blame.key))
    return (
        campaign and tuple(campaign),  # created anew, it may have the number of one that was removed
        tuple(excluded),
        tuple(session.execute(of_campaign).one()),
        session.scalar(newest),
        digest(evidence.all()),
    )
