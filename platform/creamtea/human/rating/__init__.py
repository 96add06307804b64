"""While people rate: who gets which item next, drafts, and saving scores exactly once.

`drawing` gives out pages, `places` and `orders` say which and how shown, `saving` stores; `page` is what a
rater sees and gives back. `raters` and `invitations` say who they are, `adaptive` which systems come next,
`progress` how far a campaign is.
"""

from creamtea.human.rating.drawing import next_item, others_have_items, page_ahead
from creamtea.human.rating.page import (
    ConsentMissing,
    Earlier,
    Guidance,
    RatingRefused,
    Submitted,
    TryAgain,
    Work,
)
from creamtea.human.rating.saving import (
    discard_draft,
    earlier,
    practice_guidance,
    reopen,
    save_draft,
    skip,
    submit,
)

__all__ = [
    "ConsentMissing",
    "Earlier",
    "Guidance",
    "RatingRefused",
    "Submitted",
    "TryAgain",
    "Work",
    "discard_draft",
    "earlier",
    "next_item",
    "others_have_items",
    "page_ahead",
    "practice_guidance",
    "reopen",
    "save_draft",
    "skip",
    "submit",
]
