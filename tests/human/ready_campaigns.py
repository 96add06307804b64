"""Campaigns that can be rated at once, for tests of what comes after the launch."""

from typing import Any

from rated_study import SYSTEMS

from creamtea.human.making import campaigns, launching
from creamtea.human.making.settings import CampaignSettings
from creamtea.store.database import Database

PLAIN = CampaignSettings(bad_references=0, repeats=0)  # no controls: every item is rated


def draft_campaign(
    database: Database,
    name: str,
    request: campaigns.CampaignRequest | None = None,
    *,
    replace: bool = False,
    **fields: Any,
) -> campaigns.CampaignSummary:
    """Make a draft of a request, or of these fields of one: by default of all systems of `rated_study`."""
    if request is None:
        usual = {"study": "jam", "test_set": "test", "systems": SYSTEMS, "settings": PLAIN}
        request = campaigns.CampaignRequest(**{**usual, **fields})
    with database.transaction() as session:
        campaigns.store_draft(session, name, request, replace=replace)
    return campaigns.summary(database, name)


def launched_campaign(
    database: Database, name: str = "c", *, limit: int | None = None, **fields: Any
) -> campaigns.CampaignSummary:
    """Make a draft (`draft_campaign`) of at most `limit` segments, and launch it."""
    if limit is not None:
        fields["settings"] = fields.get("settings", PLAIN).model_copy(update={"items": limit})
    draft_campaign(database, name, **fields)
    launching.launch(database, name)
    return campaigns.summary(database, name)
