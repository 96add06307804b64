"""Campaigns with texts of a test's own, what a page shows of them, and everything that it got and sent."""

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from accessibility import violations
from limits import wait_until
from playwright.sync_api import expect
from sqlalchemy import select
from table_rows import all_of, campaign_row, item_row
from watched import at_rest

from creamtea.human.media import store_media
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, Item, Rating

SYSTEMS = ["tapir-greedy", "tapir-lexicon", "tapir-nvs", "dugong-greedy"]
# study, corpus, variants, test set, parts of systems, campaigns: what a rater's browser must never get
SECRET_NAMES = ["quagga", "okapi", "tapir", "dugong", "narwhal", "lexicon", "softmax", "scones", "pangolin"]

WHOLE = {"item_document": "d", "settings": {"unit": "document"}}  # of a campaign whose items are a document
_numbers = itertools.count(1)

FOUR = ["ein roter Becher", "die rote Tasse", "eine rote Tasse", "rot Tasse"]


def own_campaign(
    database: Database,
    name: str,
    items: Sequence[tuple[str, list[str]]],
    *,
    protocol: str = "contrastive-da",
    languages: tuple[str, str] = ("en", "de"),
    pages: Sequence[int] = (),
    media_sizes: dict[str, int] | None = None,
    **fields: Any,
) -> int:
    """The id of a new launched campaign of these sources and outputs.

    A field that begins with `item_` is of every item. `pages` says how many items each page has; without it
    they are alone. `media_sizes` are those of the files in `item_media`, by digest.
    """
    starts = [
        start for start, size in zip(accumulate(pages, initial=0), pages, strict=False) for _ in range(size)
    ]
    of_items = {key.removeprefix("item_"): fields.pop(key) for key in list(fields) if key.startswith("item_")}
    with database.transaction() as session:
        now = database.now(session)
        most = max(len(outputs) for _, outputs in items)
        systems = SYSTEMS + [f"tapir-{number}" for number in range(most - len(SYSTEMS))]
        own = {"name": name, "test_set": "narwhal", "protocol": protocol, "systems": systems}
        own |= {"source_language": languages[0], "target_language": languages[1], "ratings_per_item": 20}
        campaign = campaign_row(**own | {"created_at": now, "launched_at": now} | fields)
        session.add(campaign)
        session.flush()
        for position, (source, outputs) in enumerate(items):
            texts = {"source": source, "systems": list(range(len(outputs))), "outputs": outputs}
            page = starts[position] if pages else None
            session.add(item_row(campaign.id, position, page=page, **texts, **of_items))
        if media_sizes is not None:
            store_media(session, campaign.id, of_items["media"], media_sizes)
        return int(campaign.id)


def write_item(database: Database, campaign: str, kind: str, guidance: dict[str, Any]) -> None:
    """Add an item that the organiser wrote to a campaign, behind all others: "gut" and "schlecht"."""
    with database.transaction() as session:
        number = session.scalars(select(Campaign.id).where(Campaign.name == campaign)).one()
        written = {"kind": kind, "segment_index": -1, "weight": 0.0, "source": "practice"}
        texts = {"systems": [0, 1], "outputs": ["gut", "schlecht"]}
        session.add(item_row(number, 99, guidance=guidance, **written, **texts))


def stored(
    database: Database, rater_id: int, source: str, revision: int = 1, column: Any = Rating.step
) -> dict[str, Any]:
    """The rater's stored steps, or this column, for the item with this source, by the text that was rated."""
    with database.session() as session:
        rows = session.execute(
            select(Item.systems, Item.outputs, Rating.system, column)
            .join(Assignment, Assignment.item_id == Item.id)
            .join(Rating, Rating.assignment_id == Assignment.id)
            .where(Assignment.rater_id == rater_id, Item.source == source, Rating.revision == revision)
        ).all()
    assert len(rows) == len({system for _, _, system, _ in rows})
    return {outputs[systems.index(system)]: value for systems, outputs, system, value in rows}


@dataclass
class RatersPage:
    """The page of a rater of a new campaign, and what is stored of this rater's answers."""

    page: Any
    database: Database
    campaign: str
    rater_id: int

    def stored(self, source: str, revision: int = 1) -> dict[str, int]:
        return stored(self.database, self.rater_id, source, revision)

    def payloads(self, source: str, revision: int = 1) -> dict[str, dict[str, Any] | None]:
        return stored(self.database, self.rater_id, source, revision, Rating.payload)

    def given(self, *columns: Any) -> list[tuple[Any, ...]]:
        """The position of the item and these columns of each rating, by item and system."""
        query = select(Item.position, *columns).join_from(Rating, Assignment).join(Item)
        query = query.where(Assignment.rater_id == self.rater_id).order_by(Item.position, Rating.system)
        with self.database.session() as session:
            return [tuple(row) for row in session.execute(query)]

    def assignments(self) -> list[Assignment]:
        query = select(Assignment).join(Item).where(Assignment.rater_id == self.rater_id)
        return all_of(self.database, query.order_by(Item.position))

    def draft_is(self, wanted: dict[str, Any], page: Any = None) -> None:
        """Wait until an open item's draft holds these values, and the script that saved it has ended: what it
        shows at its end it reads from the database, too."""
        draft_on(page or self.page, "saved")
        at_rest(page or self.page)
        drafts = [one.draft for one in self.assignments()]
        assert any(draft is not None and wanted.items() <= draft.items() for draft in drafts), drafts

    def second_tab(self, address: str) -> Any:
        page = self.page.context.new_page()
        page.goto(address)
        return page


def begin_rating(
    site: Any,
    open_page: Callable[..., Any],
    items: Sequence[tuple[str, list[str]]],
    *,
    consented: bool = True,
    written: tuple[str, dict[str, Any]] | None = None,
    phone: bool = False,
    slow_clock: bool = False,
    before: Callable[[Any], None] | None = None,
    **campaign: Any,
) -> tuple[RatersPage, Any]:
    """Make a campaign (`own_campaign`), perhaps with a `written` item, and open a new rater's link to it as
    `open_page` does. Unless the rater has to consent first, wait until the first page is there."""
    name = f"pangolin-{next(_numbers)}"
    own_campaign(site.database, name, items, **campaign)
    if written is not None:
        write_item(site.database, name, *written)
    link, rater_id = site.rater_link(name, "anna", consented=consented)
    page = open_page(link, before=before, phone=phone, slow_clock=slow_clock)
    if campaign.get("pages", [1])[0] > 1:
        items_on(page, 1, campaign["pages"][0], len(items))
    elif consented:
        item_on(page, 1)
    return RatersPage(page, site.database, name, rater_id), page


# ---------------------------------------------------------------- what a page shows
# While Streamlit redraws, the board before stands beside the new one for a moment: everything here waits.
# The same of every page: act and look through locators, never on what was read a moment ago.


def item_on(page: Any, number: int, total: int | None = None) -> None:
    of = r"\d+" if total is None else total
    expect(page.get_by_text(re.compile(rf"^Item {number} of (up to )?{of}$"))).to_have_count(1)
    at_rest(page)
    expect(page.locator(".board")).to_have_count(1)


def items_on(page: Any, first: int, last: int, total: int) -> None:
    """Wait for a page of several segments."""
    expect(page.get_by_text(re.compile(rf"^Items {first} to {last} of (up to )?{total}$"))).to_have_count(1)
    at_rest(page)
    expect(page.locator(".board")).to_have_count(1)


def all_done(page: Any) -> None:
    expect(page.get_by_role("heading", name="All done")).to_have_count(1)


def item_or_end(page: Any, number: int, total: int) -> None:
    """Wait for an item, or, behind the last one, for the end."""
    if number <= total:
        item_on(page, number, total)
    else:
        all_done(page)


def wait_for_size(drawn: Any, *, width: float, height: float) -> None:
    """Wait until an element is larger than so many pixels."""
    drawn.scroll_into_view_if_needed()

    def large() -> bool:
        box = drawn.bounding_box()  # None while it is replaced
        return box is not None and box["width"] > width and box["height"] > height

    wait_until(large, what=lambda: f"for a size above {width} × {height}, not {drawn.bounding_box()}")


def wait_for_width(page: Any, width: int) -> None:
    """Wait until nothing is wider than a screen of so many pixels."""
    at_rest(page)
    page.wait_for_function(
        """width => [document.documentElement, document.querySelector("[data-testid=stMain]")]
            .every((element) => element.scrollWidth <= width)""",
        arg=width,
    )


def wait_for_scores(page: Any, wanted: list[str]) -> None:
    expect(page.locator(".board output.value")).to_have_text(wanted)


def shown_texts(page: Any) -> list[str]:
    at_rest(page)
    expect(page.locator(".board")).to_have_count(1)
    return page.locator(".board .outputs .text").all_text_contents()


def press_keys(page: Any, keys: str) -> None:
    """Press these keys, which stand with blanks between."""
    for key in keys.split():
        page.keyboard.press(key)


def press_at(page: Any, row: int, step: int, steps: int = 26) -> None:
    """Click on a scale where a step is."""
    track = page.locator(".board .track").nth(row)
    track.click(position=_place(track, step, steps))


def press_all(page: Any, chosen: Sequence[int]) -> None:
    """Give each output of the page its step."""
    for row, step in enumerate(chosen):
        press_at(page, row, step)


def tap_at(page: Any, row: int, step: int, steps: int = 26) -> None:
    track = page.locator(".board .track").nth(row)
    track.tap(position=_place(track, step, steps))


def _place(track: Any, step: int, steps: int) -> dict[str, float]:
    """Where a step is, from a track's corner. A track that is being replaced has no width."""
    widths = [0.0]

    def wide() -> bool:
        widths.append(track.evaluate("track => track.getBoundingClientRect().width"))
        return widths[-1] > 0

    wait_until(wide, what=lambda: "for a scale")
    return {"x": min(max(widths[-1] * step / (steps - 1), 1), widths[-1] - 1), "y": 17}


def swipe_up(page: Any, x: float, y: float) -> None:
    """Scroll with a finger that touches the screen there."""
    touch = page.context.new_cdp_session(page)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for way in range(20, 160, 20):
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y - way}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def small_targets(page: Any) -> list[str]:
    """What a thumb would miss: controls that are less than 44 pixels high."""
    targets = page.locator(".board :is(button, .track, summary):visible")
    assert targets.count() > 5
    found: list[str] = targets.evaluate_all(
        "all => all.filter((one) => one.getBoundingClientRect().height < 44).map((one) => one.outerHTML)"
    )
    return found


def save(page: Any) -> None:
    page.get_by_role("button", name="Save").click()


def draft_on(page: Any, state: str) -> None:
    """Wait until what the rater set is "changed" (and not yet sent), "sent" or "saved"."""
    expect(page.locator(f".board[data-draft={state}]")).to_have_count(1)


def serious(page: Any) -> list[str]:
    """What axe-core finds serious or critical, with the elements."""
    return [
        f"{one['id']}: {[node['html'][:150] for node in one['nodes']]}"
        for one in violations(page)
        if one["impact"] in ("serious", "critical")
    ]


class Wire:
    """Everything that a page gets and sends: addresses, headers, HTTP bodies and WebSocket frames."""

    def __init__(self) -> None:
        self.page: Any = None
        self.answers: list[Any] = []
        self.frames: list[bytes] = []
        self.sockets = 0

    def tap(self, page: Any) -> None:
        """Listen to a page that has not asked for anything yet (`before` of `open_page`)."""
        self.page = page
        page.on("response", lambda answer: self.answers.append(answer))  # which no built-in can be
        page.on("websocket", self._listen)

    def _listen(self, socket: Any) -> None:
        self.sockets += 1
        for direction in ("framereceived", "framesent"):
            socket.on(direction, lambda data: self.frames.append(_bytes(data)))

    def everything(self) -> bytes:
        heads = [f"{answer.url} {answer.headers}".encode() for answer in self.answers]
        # asked once more: the browser forgets the bodies of a page that it has left
        fetched = {answer.url for answer in self.answers if answer.url.startswith("http")}
        bodies = [self.page.request.get(url).body() for url in sorted(fetched)]
        return b"\n".join([*heads, *bodies, *self.frames])


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
