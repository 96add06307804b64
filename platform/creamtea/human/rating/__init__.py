"""While people rate: choosing the next item of each rater, drafts, and saving scores exactly once.

`drawing` gives out pages, `places` chooses them, and `saving` stores answers. `page` has the page that a
rater sees and the answer to it. `raters` has raters, their invitations and the campaign's progress.
`adaptive` chooses which systems come next.
"""

from creamtea.human.rating.drawing import next_item as next_item
from creamtea.human.rating.drawing import others_have_items as others_have_items
from creamtea.human.rating.drawing import page_ahead as page_ahead
from creamtea.human.rating.page import ConsentMissing as ConsentMissing
from creamtea.human.rating.page import Earlier as Earlier
from creamtea.human.rating.page import Guidance as Guidance
from creamtea.human.rating.page import RatingRefused as RatingRefused
from creamtea.human.rating.page import Submitted as Submitted
from creamtea.human.rating.page import TryAgain as TryAgain
from creamtea.human.rating.page import Work as Work
from creamtea.human.rating.saving import discard_draft as discard_draft
from creamtea.human.rating.saving import earlier as earlier
from creamtea.human.rating.saving import practice_guidance as practice_guidance
from creamtea.human.rating.saving import reopen as reopen
from creamtea.human.rating.saving import save_draft as save_draft
from creamtea.human.rating.saving import skip as skip
from creamtea.human.rating.saving import submit as submit
