"""Documents: as pages with their controls and references, and the file of their names and domains."""

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import evalset
import pytest
from blocks import tables
from hypothesis import assume, given
from hypothesis import strategies as st
from ready_campaigns import draft_campaign, launched_campaign
from small_campaigns import add_rater, exchanged
from sqlalchemy import select
from table_rows import all_of, one_of

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.making.choosing import choose, make_pages, parts
from creamtea.human.making.controls import with_controls
from creamtea.human.making.launching import registration
from creamtea.human.making.preview import preview
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.making.texts import ABSENT, Documents, Line, domain_settings, read_documents
from creamtea.human.protocols import find_protocol
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, Item, Segment, StudyRow

SYSTEMS = ["a", "b", "c"]
REFERENCES = {number: f"reference {number} of some more words here" for number in range(60)}


def lines(*lengths: int) -> list[Line]:
    """Documents d0, d1, … of these lengths, each line with the three sources before it in its document."""
    made: list[Line] = []
    for number, length in enumerate(lengths):
        own: list[str] = []
        for _ in range(length):
            at = len(made)
            texts = tuple(f"text {at} of {system}" for system in SYSTEMS)
            made.append(Line(at, f"source {at}", "", texts, f"d{number}", tuple(own[-3:])))
            own.append(f"source {at}")
    return made


def complete(protocol: str = "da", **given: Any) -> CampaignSettings:
    return CampaignSettings(unit="document", **given).complete(find_protocol(protocol), SYSTEMS, "a")


def pages_of(made: list[Line], protocol: str = "da", seed: int = 1, **given: Any) -> list[list[Any]]:
    chosen = complete(protocol, **{"select": "all"} | given)
    return make_pages(choose(made, chosen, seed)[0], find_protocol(protocol), chosen, SYSTEMS, seed)


def shown(pages: list[list[Any]]) -> list[tuple[str, tuple[int, ...], list[int]]]:
    return [
        (page[0].document, tuple(map(SYSTEMS.index, page[0].systems)), [item.segment for item in page])
        for page in pages
    ]


@given(st.integers(1, 200), st.integers(1, 50))
def test_parts_are_few_equal_and_whole(length: int, at_most: int) -> None:
    cut = parts(range(length), at_most)
    sizes = [len(part) for part in cut]
    assert [segment for part in cut for segment in part] == list(range(length))
    assert max(sizes) <= at_most
    assert max(sizes) - min(sizes) <= 1
    assert (len(cut) - 1) * at_most < length


def test_one_output_at_a_time_makes_a_page_of_each_part_and_system() -> None:
    """A document's pages follow one another, those of a system too, its parts in order."""
    found = shown(pages_of(lines(3, 5), segments_per_page=3))
    long = [page for page in found if page[0] == "d1"]
    short = [page for page in found if page[0] == "d0"]
    assert found in ([*short, *long], [*long, *short])
    assert sorted(short) == [("d0", (system,), [0, 1, 2]) for system in range(3)]
    order = [systems for _, systems, _ in long[::2]]
    assert sorted(order) == [(0,), (1,), (2,)]
    assert long == [("d1", systems, part) for systems in order for part in ([3, 4], [5, 6, 7])]


def test_only_a_later_part_begins_with_context() -> None:
    pages = pages_of(lines(5), "contrastive-da", segments_per_page=3)
    assert shown(pages) == [("d0", (0, 1, 2), [0, 1]), ("d0", (0, 1, 2), [2, 3, 4])]
    assert [item.context for page in pages for item in page] == [(), (), ("source 0", "source 1"), (), ()]


def with_texts(*texts: str) -> list[Line]:
    """Documents of two segments, with what the three systems say of each segment."""
    return [Line(at, f"source {at}", "", tuple(said), f"d{at // 2}") for at, said in enumerate(texts)]


def test_systems_share_a_page_only_if_they_say_the_same_on_all_of_it() -> None:
    found = shown(pages_of(with_texts("xxy", "abc", "xxy", "zzw")))  # d0: equal once
    assert sorted(found) == [
        *[("d0", (system,), [0, 1]) for system in range(3)],
        ("d1", (0, 1), [2, 3]),
        ("d1", (2,), [2, 3]),
    ]
    pairs = shown(pages_of(with_texts("xxy", "xxx"), "preference", select="differing"))
    assert sorted(systems for _, systems, _ in pairs) == [(0, 2), (1, 2)]  # of the second segment, too


def test_where_documents_are_scored_they_share_pages_only_if_all_of_it_is_the_same() -> None:
    made = with_texts("xxx", "yyz")  # in one part all say the same
    found = shown(pages_of(made, segments_per_page=1, document_score=True))
    apart = [((0, 1), [0]), ((0, 1), [1]), ((2,), [0]), ((2,), [1])]
    assert sorted((systems, segments) for _, systems, segments in found) == apart
    found = shown(pages_of(made, segments_per_page=1))
    assert ((0, 1, 2), [0]) in [(systems, segments) for _, systems, segments in found]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(1, 6), st.integers(0, 9))
def test_every_output_is_rated_once(lengths: list[int], at_most: int, seed: int) -> None:
    made = lines(*lengths)
    for protocol in ("da", "contrastive-da"):
        pages = pages_of(made, protocol, seed, segments_per_page=at_most)
        assert pages == pages_of(made, protocol, seed, segments_per_page=at_most)
        seen = Counter((item.segment, system) for page in pages for item in page for system in item.systems)
        assert seen == {(line.index, system): 1 for line in made for system in SYSTEMS}
        for page in pages:
            assert 1 <= len(page) <= at_most
            first = page[0].segment
            assert [item.segment for item in page] == list(range(first, first + len(page)))
            assert len({(item.document, *item.systems) for item in page}) == 1


# ---------------------------------------------------------------- drawing documents


def test_a_number_of_items_is_one_of_documents() -> None:
    choices, drawn = choose(lines(2, 3, 4, 5), complete(items=2), 1)
    chosen = {choice.document for choice in choices}
    assert len(chosen) == 2
    sizes = {"d0": 2, "d1": 3, "d2": 4, "d3": 5}
    assert drawn.chosen == len(choices) == sum(sizes[name] for name in chosen)
    assert (drawn.documents, drawn.of_documents, drawn.population) == (2, 4, 14)


def test_a_document_differs_with_one_of_its_segments() -> None:
    choices, drawn = choose(with_texts("xxx", "abc", "yyy", "zzz"), complete(select="differing"), 1)
    assert [choice.index for choice in choices] == [0, 1]
    assert (drawn.differing, drawn.documents, drawn.of_documents) == (1, 1, 1)


def test_strata_are_of_the_documents_lengths_and_weights_keep_the_mean() -> None:
    made = lines(*[1, 9] * 10)
    choices, _ = choose(made, complete(select="stratified", items=6), 3)
    assert sum(choice.weight for choice in choices) == pytest.approx(len(choices))
    per_document = {choice.document: choice.weight for choice in choices}
    assert len(per_document) == 6
    assert len({len([c for c in choices if c.document == name]) for name in per_document}) == 2


def test_disagreement_is_the_mean_of_a_documents_segments() -> None:
    made = lines(2, 2, 2, 2)
    metric = {segment: (0, value, 0) for segment, value in enumerate((9, 0, 5, 5, 1, 1, 0, 1))}
    settings = complete(select="disagreement", metrics=["m"], items=2, random_share=0.5)
    choices, _ = choose(made, settings, 1, [metric])
    rated = {choice.document for choice in choices if choice.kind == "rated"}
    assert rated == {"d1"} or {c.document for c in choices if c.kind == "random"} == {"d1"}
    assert len({choice.document for choice in choices}) == 2


def test_controls_are_whole_pages_behind_their_originals() -> None:
    pages = pages_of(lines(*[4] * 10), segments_per_page=4)
    chosen = complete(bad_references=3, repeats=2, batch=40)
    placed = with_controls(pages, REFERENCES, chosen, "en", 5, first=2)
    items = [item for page in placed for item in page]
    kinds = Counter(tuple(sorted(Counter(item.kind for item in page).items())) for page in placed)
    assert kinds == {(("rated", 4),): 30, (("repeat", 4),): 2, (("bad-reference", 1), ("repeat", 3)): 3}
    place = 2
    for page in placed:
        for offset, item in enumerate(page):
            if item.original is None:
                continue
            original = items[item.original - 2]
            assert original.source == item.source
            assert item.original == page[0].original + offset
            assert place - page[0].original >= 20
            changed = [old != new for old, new in zip(original.outputs, item.outputs, strict=True)]
            assert any(changed) == (item.kind == "bad-reference")
        place += len(page)
    few = pages_of(lines(2, 2), "contrastive-da")
    with pytest.raises(InputError, match="3 repeats too many: only 1 page has a place"):
        with_controls(few, REFERENCES, complete(bad_references=0, repeats=4), "en", 1)


# ---------------------------------------------------------------- campaigns

DOCUMENTS = ["x", "x", "x", "y", "y"]


def make(database: Database, documents: list[str] | None = DOCUMENTS, **given: Any) -> Any:
    protocol = given.pop("protocol", "contrastive-da")
    chosen = CampaignSettings(**{"unit": "document", "bad_references": 0, "repeats": 0} | given)
    named = None if documents is None else Documents(tuple(documents))
    return draft_campaign(
        database, "c", systems=["plain", "beam"], settings=chosen, documents=named, protocol=protocol
    )


def test_a_campaign_of_documents(study_database: Database) -> None:
    made = make(study_database, segments_per_page=2, repeats=1, batch=4)
    assert (made.items in (6, 7), made.pages) == (True, 4)
    items = all_of(study_database, select(Item).order_by(Item.position))
    pages = [list(group) for _, group in groupby(items, key=lambda item: item.page)]
    assert len(pages) == 4
    assert all(members[0].page == members[0].position for members in pages)
    (repeats,) = (members for members in pages if members[0].kind == "repeat")
    originals = {item.id: item for item in items}
    assert repeats[0].page not in {originals[item.original_id].page for item in repeats}
    plan = preview(study_database, "c")
    assert plan.pages == 4
    assert (plan.split, plan.of_documents, plan.document_score) == (1, 2, False)
    assert plan.minutes_per_page == pytest.approx(plan.minutes_per_item * made.items / 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"documents": None}, "sample.unit document needs documents: a file"),
        ({"select": "stratified", "strata": ["document"], "items": 2}, "sample.unit document takes"),
        ({"unit": "segment", "document_score": True}, "protocol.document_score: does nothing without"),
        ({"protocol": "preference", "document_score": True}, "protocol.document_score: preference has no"),
        ({"documents": ["x", "y", "x", "y", "y"]}, "document 'x' begins again at segment 3"),
    ],
)
def test_what_does_not_go_together(study_database: Database, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(study_database, **given)


# ---------------------------------------------------------------- references


def with_references(database: Database) -> None:
    """Three targets, and a second reference, which is system `entmax`."""
    with database.transaction() as session:
        for segment in session.scalars(select(Segment)):
            segment.reference = f"target {segment.index}" if segment.index < 3 else ""
        study = session.scalars(select(StudyRow)).one()
        systems = dict(study.spec["systems"]) | {"entmax": {"reference": 2}, "scones": {"reference": 1}}
        study.spec = {**study.spec, "systems": systems}


def test_raters_see_the_references_that_the_organiser_names(study_database: Database) -> None:
    with_references(study_database)
    make(study_database, None, unit="segment", show_reference=[1, 2], select="all", repeats=1)
    with study_database.session() as session:
        items = session.scalars(select(Item)).all()
        shown = {item.segment_index: item.references for item in items}
        campaign = session.scalars(select(Campaign)).one()
        assert campaign.settings["show_reference"] == [1, 2]
        assert campaign.settings["references"] == []  # human references among the systems
        assert "items" in registration(session, campaign)
    assert shown[1] == ["target 1"]  # the second one is empty there
    assert shown[0] == ["target 0", "Haus"]
    assert shown[4] == ["vier"]
    assert all(item.references == shown[item.segment_index] for item in items)
    draft_campaign(study_database, "human", systems=["plain", "entmax"])
    human = one_of(study_database, select(Campaign).where(Campaign.name == "human"))
    assert human.settings["references"] == ["entmax"]


@pytest.mark.parametrize(
    ("systems", "numbers", "message"),
    [
        (["plain", "entmax"], [2], "protocol.show_reference: 2: that is system 'entmax', which takes part"),
        (["plain", "beam"], [1, 1], "protocol.show_reference: 1: it is named twice"),
        (["plain", "beam"], [3], "no system of study 'jam' is that reference: .* `reference: 3`"),
        (["plain", "beam"], [1], "test set 'test' has no reference to show"),
    ],
)
def test_references_that_cannot_be_shown(
    study_database: Database, systems: list[str], numbers: list[int], message: str
) -> None:
    if "has no reference" not in message:
        with_references(study_database)
    settings = CampaignSettings(bad_references=0, repeats=0, show_reference=numbers)
    with pytest.raises(InputError, match=message):
        draft_campaign(study_database, "c", systems=systems, settings=settings)


# ---------------------------------------------------------------- the file of documents, and domains


GOOD: dict[str, Any] = {"systems": ["plain", "beam"]}
NEWS_AND_CHAT = Documents(("x", "x", "x", "y", "z"), {"x": "news", "y": "news", "z": "chat"})
STEPS = {"plain": (10, 20, 50, 90, 80), "beam": (30, 31, 50, 40, 51)}  # of each segment


@pytest.mark.parametrize(
    ("text", "names", "domains"),
    [
        ("d1\nd1\nd 2\n", ("d1", "d1", "d 2"), {}),
        ("\ufeffnews\td1\r\n-\nchat\t d2\nnews\td1", ("d1", "", "d2", "d1"), {"d1": "news", "d2": "chat"}),
        # "any amount of whitespace", says the README of mt-metrics-eval; names of several words stay names
        ("news d1\n-\nchat \t  d2\n news d1 \n", ("d1", "", "d2", "d1"), {"d1": "news", "d2": "chat"}),
        ("my first\nmy second one\n", ("my first", "my second one"), {}),
    ],
)
def test_lines_with_domains_and_without(text: str, names: tuple[str, ...], domains: dict[str, str]) -> None:
    found = read_documents(text, "docs")
    assert found == Documents(names, domains)
    places = {name: [at for at, one in enumerate(names) if one == name] for name in names if name}
    assert found.lines == places


NAMES = st.text(min_size=1, max_size=5).map(str.strip)
NAMES = NAMES.filter(
    lambda name: name not in ("", ABSENT) and not set("\t\n\0") & set(name) and name[0] != "\ufeff"
)


@given(st.lists(NAMES, min_size=1, max_size=8), st.none() | st.lists(NAMES, min_size=1, max_size=3))
def test_every_name_comes_back(names: list[str], kinds: list[str] | None) -> None:
    names = [name for name in names if name.isprintable()] or ["d"]
    domains = {}
    if kinds is not None:
        domains = {name: kinds[at % len(kinds)] for at, name in enumerate(dict.fromkeys(names))}
    assume(domains or any(len(name.split()) != 2 for name in names))
    text = "".join(f"{domains[name]}\t{name}\n" if domains else f"{name}\n" for name in names)
    assert read_documents(text, "docs") == Documents(tuple(names), domains)


@pytest.mark.parametrize(
    ("text", "with_domains", "message"),
    [
        ("d1\nnews\t \n", False, r"^docs, line 2: found 'news\\t '; allowed: DOCUMENT, or DOMAIN TAB"),
        ("d1\n\nd2\n", False, "line 2: found ''"),
        ("", False, "line 1: found ''"),
        ("a\tb\tc\n", False, "line 1: found"),
        ("news d1\nnews d1 x\n", True, "line 2: found 'news d1 x'; allowed: DOMAIN TAB DOCUMENT, or two"),
        ("news\td1\nnews d 1\n", True, "line 2: found 'news d 1'"),
        ("news\td1\nd2\n", False, "line 2: some lines have a domain and some have none"),
        ("d2\nnews\td1\n", False, "line 2: some lines have a domain and some have none"),
        ("news\td1\nchat\td1\n", False, "line 2: document 'd1' is of domain 'chat' here and of 'news'"),
        ("d1\nd\0\n", False, "line 2: found a name with a NUL character"),
    ],
)
def test_a_line_that_cannot_be_is_refused(text: str, with_domains: bool, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_documents(text, "docs", with_domains=with_domains)


def test_one_domain_of_the_test_sets_name_says_nothing() -> None:
    assert domain_settings({}, "test") == domain_settings({"a": "test", "b": "test"}, "test") == {}
    assert domain_settings({"a": "news"}, "test") == {"domains": {"a": "news"}}


def wmt_means(database: Database, name: str, rule: str) -> tuple[dict[str, Any], str]:
    [table] = [one for one in tables(build_human(database, name, rule)) if one.key == "wmt"]
    return {row.name: row.cells["raw"].value for row in table.rows}, table.about


def test_domains_of_a_campaign_made_here(study_database: Database, tmp_path: Path) -> None:
    """WMT 2024 averages over its domains, not over segments; every export has them."""
    launched_campaign(study_database, "c", **GOOD, protocol="da", documents=NEWS_AND_CHAT)
    anna = add_rater(study_database)
    texts = {
        (item.segment, output): item.systems[0]
        for item in collect(study_database, "c").items
        for output in item.outputs
    }
    while work := assignment.next_item(study_database, anna):
        segment = int(work.source.removeprefix("source "))
        step = STEPS[texts[segment, work.outputs[0]]][segment]
        assignment.submit(study_database, anna, work.assignment_id, [step])
    means, about = wmt_means(study_database, "c", "esa")
    assert "means over 2 domains" in about
    assert means == {"plain": (42.5 + 80) / 2, "beam": (37.75 + 51) / 2}
    by_segments, about = wmt_means(study_database, "c", "usual")
    assert by_segments == {"plain": 50.0, "beam": 40.4}

    export_campaign(study_database, "c", "mt-metrics-eval", tmp_path / "mtme", "test")
    assert (tmp_path / "mtme/documents/en-de.docs").read_text().split("\n")[:-1] == [
        "news\tx", "news\tx", "news\tx", "news\ty", "chat\tz",
    ]  # fmt: skip
    found = evalset.read(tmp_path / "mtme", "en-de")
    assert found.by_domain["en-de.da.domain.score", "plain"] == {"news": "42.5", "chat": "80.0"}
    import_campaign(study_database, tmp_path / "mtme", "mt-metrics-eval", ImportFacts("copy"), "test")
    assert collect(study_database, "copy").settings["domains"] == NEWS_AND_CHAT.domains
    exchanged(study_database, tmp_path)
    assert wmt_means(study_database, "again", "esa") == wmt_means(study_database, "c", "esa")
