"""The file of documents, and what a campaign that was made with it knows of domains."""

from pathlib import Path
from typing import Any

import evalset
import pytest
from blocks import tables
from hypothesis import assume, given
from hypothesis import strategies as st
from ready_campaigns import launched_campaign
from small_campaigns import add_rater, exchanged

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.making.texts import ABSENT, Documents, domain_settings, read_documents
from creamtea.report.human.build import build_human
from creamtea.store.database import Database

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
        ("news d1\nnews d1 x\n", True, "line 1: found 'news d1'; allowed: DOMAIN TAB DOCUMENT"),
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
