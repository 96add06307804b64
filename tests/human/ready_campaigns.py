"""Campaigns that can be rated at once, for tests of what comes after the launch."""

from __future__ import annotations

from typing import Any

from creamtea.access import audit
from creamtea.human.making import campaigns, launching
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.rating import raters
from creamtea.store.database import Database

PLAIN = CampaignSettings(bad_references=0, repeats=0)  # no controls: every item is rated


def launched_campaign(
    database: Database,
    name: str,
    *,
    limit: int | None = None,
    settings: CampaignSettings = PLAIN,
    **options: Any,
) -> campaigns.CampaignSummary:
    """Create a campaign (options as for `create_campaign`) of at most `limit` segments, and launch it."""
    settings = settings.model_copy(update={"items": limit}) if limit is not None else settings
    campaigns.create_campaign(database, name, campaigns.CampaignRequest(settings=settings, **options))
    launching.launch(database, name)
    return campaigns.summary(database, name)


def add_rater(database: Database, campaign: str, pseudonym: str) -> int:
    """The id of the campaign's rater with this pseudonym, who is added if new."""
    return raters.find_or_add(database, campaign, audit.COMMAND_LINE, pseudonym)
