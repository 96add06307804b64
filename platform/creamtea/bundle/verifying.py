"""Computes the numbers of a bundle again, without a database or a network, and says which differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

import creamtea
from creamtea.bundle.archive import MANIFEST, Archive, sha256
from creamtea.bundle.differences import NOTHING, Difference, differences, numbers
from creamtea.bundle.opening import Opened, opened_bundle
from creamtea.bundle.packing import ABOUT, PAGE, README, REPORT, media_file, versions
from creamtea.bundle.recomputing import Findings, check_plan, check_step, plugins_missing
from creamtea.document.canonical import digest
from creamtea.errors import CreamteaError
from creamtea.human.making.launching import changed_parts
from creamtea.human.media import types_of
from creamtea.human.protocols import find_protocol
from creamtea.report.build import report_of
from creamtea.report.html import to_html
from creamtea.report.values import to_values
from creamtea.store.queries import find_study
from creamtea.store.tables import Assignment, Campaign, CampaignMedia, Item, Rater, Rating, StepRow

NAMED = 3  # places of numbers that are not compared
AROUND = 60  # characters shown on both sides of where two pages differ


@dataclass(frozen=True)
class NotRecomputed:
    """What was not recomputed, and why."""

    what: str
    reason: str
    places: tuple[str, ...]


@dataclass(frozen=True)
class Verification:
    """`recomputed`: how many numbers, by what they are of. `versions`: package → (packed with, here)."""

    study: str
    number: int
    packed_by: str
    versions: dict[str, tuple[str, str]]
    recomputed: dict[str, int]
    not_recomputed: tuple[NotRecomputed, ...]
    differences: tuple[Difference, ...]


def verify(path: Path, progress: Callable[[str], None] = lambda place: None) -> Verification:
    """`progress` is told of each step that is computed again. InputError for a file that is no bundle."""
    found = Findings()
    with Archive(path) as archive, opened_bundle(archive) as bundle:
        found.differences += bundle.differences
        with bundle.database.session() as session:
            _guarded("plan of the study", found, partial(check_plan, session, found))
            steps = session.scalars(select(StepRow).where(StepRow.state == "succeeded")).all()
            for row in sorted(steps, key=lambda row: bundle.places.get(row.key, "")):
                place = bundle.places.get(row.key, row.key[:12])
                progress(place)
                _guarded(place, found, partial(check_step, bundle, session, row, place, found))
            for campaign in session.scalars(select(Campaign).order_by(Campaign.id)):
                place = f"campaign {campaign.name}"
                _guarded(place, found, partial(_check_campaign, session, campaign, archive, found))
            progress("report")
            _guarded(REPORT, found, partial(_check_report, bundle, session, archive, found))
            _check_rest(bundle, session, archive, found)
        manifest = archive.manifest
    here = versions() | {"creamtea": creamtea.__version__}
    packed = manifest.versions | {"creamtea": manifest.creamtea}
    return Verification(
        study=manifest.study.name,
        number=manifest.study.number,
        packed_by=manifest.creamtea,
        versions={
            name: (packed.get(name, NOTHING), here.get(name, NOTHING)) for name in sorted(packed | here)
        },
        recomputed=found.recomputed,
        not_recomputed=tuple(NotRecomputed(*key, tuple(places)) for key, places in found.left.items()),
        differences=tuple(found.differences),
    )


def _guarded(place: str, found: Findings, check: Callable[[], None]) -> None:
    """Rows that nothing can be computed of (a rating of a system that is not there, say) are a difference."""
    try:
        check()
    except CreamteaError as error:
        found.differences.append(Difference(place, "a result", f"cannot be computed: {error}"))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError) as error:
        reason = f"cannot be computed: {type(error).__name__}: {error}"
        found.differences.append(Difference(place, "a result", reason))


def _check_campaign(session: Session, campaign: Campaign, archive: Archive, found: Findings) -> None:
    """What was registered at the launch, and ratings that follow from their payload (marked errors)."""
    place = f"campaign {campaign.name}"
    registered, what = campaign.registered, "registered plans"
    if registered is not None:
        kept = {part: value for part, value in registered.items() if part != "digest"}
        emptied = [line for line in archive.manifest.left_out if line.startswith(f"{place}: ")]
        if emptied:
            found.leave(what, f"its digest covers what is left out ({', '.join(emptied)})", place)
        else:
            found.compare(what, registered["digest"], digest(kept), f"{place}: registered plan: digest")
        for part, (then, now) in changed_parts(session, campaign).items():
            found.differences += differences(then, now, f"{place}: registered plan: {part}")
    _check_media(session, campaign, archive, found)
    protocol = find_protocol(campaign.protocol, campaign.settings)
    with_payload = (
        select(Rating, Item, Rater.pseudonym)
        .join(Assignment, Assignment.id == Rating.assignment_id)
        .join(Item, Item.id == Assignment.item_id)
        .join(Rater, Rater.id == Assignment.rater_id)
        .where(Item.campaign_id == campaign.id)
        .order_by(Rating.id)
    )
    for rating, item, rater in session.execute(with_payload):
        where = f"{place}: rating of {campaign.systems[rating.system]}, item {item.position}, by {rater}"
        step: Any = protocol.scale.check(rating.step)
        if rating.payload is not None:
            text = item.outputs[item.systems.index(rating.system)]
            step = protocol.read_answer(rating.payload, text).step
        found.compare("ratings", rating.step, step, where)


def _check_media(session: Session, campaign: Campaign, archive: Archive, found: Findings) -> None:
    """That the files beside sources are those that the items name."""
    place = f"campaign {campaign.name}: files beside sources"
    kept = select(CampaignMedia).where(CampaignMedia.campaign_id == campaign.id)
    files = {file.digest: file for file in session.scalars(kept.order_by(CampaignMedia.digest))}
    items = session.scalars(select(Item).where(Item.campaign_id == campaign.id).order_by(Item.position))
    named = set(types_of(entry for item in items for entry in item.media))
    for content_digest in sorted(named ^ set(files)):
        both = ("named by an item", NOTHING) if content_digest in named else (NOTHING, "there")
        found.differences.append(Difference(f"{place}: {content_digest}", *both))
    there = set(archive.names("media/"))
    for content_digest, file in files.items():
        where = f"{place}: {content_digest}"
        if media_file(content_digest) not in there:
            found.differences.append(Difference(where, "a file", NOTHING))
            continue
        content = archive.read(media_file(content_digest))
        found.compare(
            "files beside sources", [content_digest, file.size], [sha256(content), len(content)], where
        )


def _check_report(bundle: Opened, session: Session, archive: Archive, found: Findings) -> None:
    missing = next(filter(None, map(plugins_missing, session.scalars(select(StepRow)))), "")
    if missing:  # without it not even the study can be read
        found.leave(REPORT, missing, REPORT)
        return
    report = report_of(session, find_study(session, bundle.study), alone=True)
    stored, recomputed = archive.read_json(REPORT), _as_json(to_values(report))
    if archive.manifest.creamtea != creamtea.__version__:  # its words and what it shows may differ
        stored, recomputed = numbers(stored), numbers(recomputed)
        lacking = stored.keys() - recomputed.keys()
        if lacking:
            reason = (
                f"this version of creamtea does not report all numbers: {len(lacking):,} are not compared"
            )
            found.leave(REPORT, reason, ", ".join(sorted(lacking)[:NAMED]))
        both = [name for name in stored if name in recomputed]
        stored, recomputed = {name: stored[name] for name in both}, {name: recomputed[name] for name in both}
    found.compare("report", stored, recomputed, REPORT)
    page, again = archive.read(PAGE).decode(errors="replace"), to_html(report)
    if page != again:
        at = next(
            (number for number, pair in enumerate(zip(page, again, strict=False)) if pair[0] != pair[1]),
            min(len(page), len(again)),
        )
        shown = slice(max(0, at - AROUND), at + AROUND)
        line = page[:at].count("\n") + 1
        if archive.manifest.creamtea != creamtea.__version__:
            found.leave(PAGE, "was written by another version of creamtea", f"line {line}")
        else:
            found.differences.append(Difference(f"{PAGE}, line {line}", page[shown], again[shown]))


def _check_rest(bundle: Opened, session: Session, archive: Archive, found: Findings) -> None:
    """What people read and nothing is computed from; last, as it knows the files that no row is about."""
    row = find_study(session, bundle.study)
    if archive.manifest.study.name != row.name:
        found.differences.append(Difference(f"{MANIFEST}: study", archive.manifest.study.name, row.name))
    if archive.manifest.creamtea != creamtea.__version__:
        found.leave(README, "was written by another version of creamtea", README)
    elif (text := archive.read(README).decode(errors="replace")) != ABOUT:
        found.differences.append(Difference(README, text, ABOUT))
    known = {REPORT, PAGE, README, *map(media_file, session.scalars(select(CampaignMedia.digest)))}
    found.differences += [
        Difference(name, "there", "a file that no row is about")
        for name in archive.unread()
        if name not in known
    ]


def _as_json(value: Any) -> Any:
    """As a file has it: tuples as lists, keys as texts."""
    return json.loads(json.dumps(value, allow_nan=False))
