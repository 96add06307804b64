"""Assignment: who rates which item next, drafts, and saving scores exactly once.

`drawing` gives out items, `places` and `orders` say which and how shown; `saving` stores; `revising` goes
back; `ahead` shows organisers what raters will see; `locking` is what every transaction starts with.
"""

from creamtea.human.rating.ahead import page_ahead
from creamtea.human.rating.drawing import next_item, others_have_items
from creamtea.human.rating.model import (
    LEASE,
    ConsentMissing,
    Earlier,
    Guidance,
    RatingRefused,
    Submitted,
    TryAgain,
    Work,
)
from creamtea.human.rating.orders import draw_order, groups_of
from creamtea.human.rating.revising import discard_draft, earlier, reopen
from creamtea.human.rating.saving import MAX_TEXT, save_draft, skip, submit

__all__ = [
    "LEASE",
    "MAX_TEXT",
    "ConsentMissing",
    "Earlier",
    "Guidance",
    "RatingRefused",
    "Submitted",
    "TryAgain",
    "Work",
    "discard_draft",
    "draw_order",
    "earlier",
    "groups_of",
    "next_item",
    "others_have_items",
    "page_ahead",
    "reopen",
    "save_draft",
    "skip",
    "submit",
]
