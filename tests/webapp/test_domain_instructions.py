"""What an organiser wrote for a domain stands above its items, for raters and in the look ahead."""

from __future__ import annotations

from organiser_app import Visit, shown
from small_campaigns import add_rater, make_campaign

from creamtea.access.sessions import Identity
from creamtea.store.database import Database


def test_raters_and_organisers_see_them_above_the_items(ready: Database, visit: Visit) -> None:
    settings = {
        "domains": {"d1": "chat", "d2": "news"},
        "domain_instructions": {"chat": "As *friends* talk. <script>x</script>"},
    }
    for document in ("d1", "d2"):
        items = [{"document": document}]
        campaign = make_campaign(ready, items, name=document, protocol="da", bad_references=0, **settings)
        rater = Identity(9, "rater", rater_id=add_rater(ready, "anna", document), campaign_id=campaign)
        for page in (shown(visit(rater)), shown(visit(campaign=campaign, view="ahead", item=1))):
            assert ("As <em>friends</em> talk." in page) == (document == "d1")
            assert "<script>" not in page
