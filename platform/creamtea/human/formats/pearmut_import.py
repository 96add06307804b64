"""Answers given in Pearmut as a campaign: its files (`pearmut` has their layout)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from creamtea.document.strict_json import parse_json
from creamtea.errors import InputError
from creamtea.human.formats.answers import checked_items
from creamtea.human.formats.content import Content
from creamtea.human.formats.elsewhere import Evidence, ImportFacts, made_elsewhere
from creamtea.human.formats.files import Place, read_text
from creamtea.human.formats.losses import NotKept, counts
from creamtea.human.formats.pearmut import ANSWERS, CAMPAIGN, PROTOCOLS, RESET, Campaign, Line
from creamtea.human.formats.pearmut_answers import Answers
from creamtea.human.formats.pearmut_checks import stand_in
from creamtea.human.formats.pearmut_tags import Assets, assets_of
from creamtea.human.formats.pearmut_unread import unread_settings
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.da_sqm import DaSqm
from creamtea.wording import option


def read_pearmut(path: Path, facts: ImportFacts, now: datetime) -> tuple[Content, tuple[NotKept, ...]]:
    """As `read_with_files`, without them."""
    return read_with_files(path, facts, now)[:2]


def read_with_files(
    path: Path, facts: ImportFacts, now: datetime
) -> tuple[Content, tuple[NotKept, ...], dict[str, Path]]:
    """The campaign in Pearmut's answers, what is not kept, and the files beside sources, by SHA-256, where
    others wrote the campaign. A folder of an export has the answers and the campaign's file;
    `facts.campaign_file` is that of others, for the protocol, files and items without an answer.

    Each submission of a document again is a further revision. InputError with file, line and what was found.
    """
    file = path / ANSWERS if path.is_dir() else path
    beside = facts.campaign_file or (path / CAMPAIGN if path.is_dir() else None)
    campaign, place = None, Place("", 0)
    if beside is not None:
        place = Place(beside.name, 1)
        campaign = place.read(Campaign, parse_json(read_text(beside), str(place)), "campaign")
    protocol = _protocol(facts, campaign)
    unread = unread_settings(campaign, protocol) if campaign is not None else ()
    assets = Assets()
    if beside is not None and campaign is not None and (named := campaign.info.assets):
        assets = assets_of(beside, named.source, named.destination)
    answers = _read(Answers(protocol, now, assets), file, place, campaign)
    if answers.on_line_feeds:
        answers = _read(Answers(protocol, now, assets, without="\n"), file, place, campaign)
    elif campaign is None or campaign.info.special_tokens is None:
        answers.left["places behind line feeds, read as Pearmut counts them from version 1.1.5 on"] += (
            answers.behind_line_feeds
        )
    if campaign is None:
        seen = answers.evidence
        Evidence(seen["scores"], seen["errors"], seen["categories"]).check(answers.protocol, file.name)
    ordered = sorted(answers.items.values(), key=lambda item: item.position)
    systems, items, ratings = stand_in(ordered, answers.with_comments(), answers.left)
    if not ratings:
        found = "; ".join(map(str, (*counts(answers.left), *unread))) or "nothing"
        raise InputError(f"{file.name}: no ratings of systems in it; found {found}")
    places = {item.position: answers.places[key] for key, item in answers.items.items()}
    checked = checked_items([(places[item.position], item) for item in items], systems)
    made = made_elsewhere(facts, answers.protocol.name, facts.pair, systems, checked, ratings)
    return made, (*counts(answers.left), *unread), assets.files


def _read(answers: Answers, file: Path, beside: Place, campaign: Campaign | None) -> Answers:
    """The items of the campaign's file and the lines of the answers."""
    for part, document in _documents(campaign):
        if answers.add_document(beside, document, part) is None:
            answers.left["questions of forms"] += len(document)
    for place, line in _submitted(file, answers.left):
        document = _document(place, line, campaign)
        part = line.item_i.split("_")[0] if isinstance(line.item_i, str) else ""
        read = answers.add_document(place, document, part)
        if read is None:
            answers.left["answers to forms"] += len(line.annotation)
        else:
            answers.add_line(place, line, read, document, part)
    return answers


def _protocol(facts: ImportFacts, campaign: Campaign | None) -> Protocol:
    known = (*PROTOCOLS.values(), DaSqm.name)
    if facts.protocol is None and campaign is None:
        raise InputError(
            f"Pearmut's answers do not say the protocol: give the campaign with {option('campaign-file')}, "
            f"or {option('protocol')}, one of {', '.join(known)}",
            about="campaign-file",
        )
    told = PROTOCOLS.get(campaign.info.protocol) if campaign else None
    same = (None, told, DaSqm.name if told == "da" else told)  # Pearmut has one name for DA and DA+SQM
    if told is not None and facts.protocol in known and facts.protocol not in same:
        raise InputError(
            f"{option('protocol')} {facts.protocol}: the campaign's file contradicts it: it says {told}",
            about="protocol",
        )
    name = facts.protocol or told
    if name not in known:
        found = facts.protocol or (campaign.info.protocol[:60] if campaign else "")
        raise InputError(f"protocol {found}: answers given in Pearmut are of {', '.join(known)}")
    return facts.find_protocol(name)


def _submitted(path: Path, left: Counter[str]) -> list[tuple[Place, Line]]:
    """The submitted documents, but those that a reset took back."""
    found: list[tuple[Place, Line]] = []
    for place, written in _written(path):
        if isinstance(written, dict) and isinstance(written.get("annotation"), dict):
            raise InputError(
                f"{place}: annotation: found an object, as Pearmut wrote before version 1; allowed: a list "
                "with an entry for each segment"
            )
        line = place.read(Line, written, "the line")
        if isinstance(line.annotation, list):
            found.append((place, line))
        elif line.annotation == RESET:
            stays = [
                (place, before)
                for place, before in found
                if before.user_id != line.user_id or line.item_i not in (None, before.item_i)
            ]
            left["submitted documents before a reset"] += len(found) - len(stays)
            found = stays
        else:
            raise InputError(f"{place}: annotation: found {line.annotation[:60]!r}; allowed: a list")
    return found


def _written(path: Path) -> Iterator[tuple[Place, Any]]:
    """Each line; of a download from the dashboard, one object with a list for each campaign, each entry."""
    text = read_text(path)
    place = Place(path.name, 1)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):  # several lines, or not JSON
        whole = None
    if not isinstance(whole, dict) or "annotation" in whole:
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                place = Place(path.name, number)
                yield place, parse_json(line, str(place))
        return
    if "info" in whole and "data" in whole:
        raise InputError(
            f"{place}: a campaign of Pearmut, without answers: give them (data/annotations/NAME.jsonl, or a "
            f"download from the dashboard), and this file with {option('campaign-file')}",
            about="campaign-file",
        )
    if len(whole) != 1 or not isinstance(next(iter(whole.values())), list):
        raise InputError(
            f"{place}: found {', '.join(map(repr, whole))[:60]}; allowed: a line for each submitted "
            "document, or a download of one campaign"
        )
    for entries in whole.values():
        yield from ((place, entry) for entry in entries)


def _documents(campaign: Campaign | None) -> Iterator[tuple[str, list[Any]]]:
    """All documents of the campaign, with users and without, and the part of it that each is in."""
    if campaign is None:
        return
    data = campaign.data
    for task in data.values() if isinstance(data, dict) else data:
        if not isinstance(task, list):
            raise InputError("the campaign's data: allowed: lists of documents, which are lists of items")
        if all(isinstance(item, dict) for item in task):
            yield "", task  # of a list of documents for all
        else:
            yield from (("", document) for document in task if isinstance(document, list))
    for part, documents in campaign.parts.items():
        yield from ((part, document) for document in documents)


def _document(place: Place, line: Line, campaign: Campaign | None) -> list[Any]:
    """The items of a line: its own, or the campaign's."""
    if line.item is not None:
        return list(line.item)
    data: Any = [] if campaign is None else campaign.data
    at: Any = line.item_i
    try:
        if campaign is not None and isinstance(at, str):
            part, _, number = at.partition("_")
            data, at = campaign.parts[part], int(number)
        documents = data[line.user_id] if isinstance(data, dict) else data
        document = documents[at] if at >= 0 else None
    except (KeyError, IndexError, TypeError, ValueError):
        document = None
    if not isinstance(document, list) or not all(isinstance(item, dict) for item in document):
        raise InputError(
            f"{place}: it has no items, and {option('campaign-file')} none for document {line.item_i} of "
            f"{line.user_id}",
            about="campaign-file",
        )
    return document
