"""Which files a campaign needs, and where they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from creamtea.human.media.files import types_of
from creamtea.store.tables import CampaignMedia, Item


def store_media(
    session: Session, campaign_id: int, entries: Iterable[Mapping[str, Any]], sizes: Mapping[str, int]
) -> None:
    """Note what the items of a campaign show (`Item.media`), in place of what was noted before. `sizes` of
    the files in bytes, by SHA-256."""
    session.execute(delete(CampaignMedia).where(CampaignMedia.campaign_id == campaign_id))
    session.add_all(
        CampaignMedia(campaign_id=campaign_id, digest=digest, type=media, size=sizes[digest])
        for digest, media in sorted(types_of(entries).items())
    )


@dataclass(frozen=True)
class KeptFile:
    type: str  # MIME
    size: int  # bytes
    campaigns: Collection[int]  # that show it


@dataclass(frozen=True)
class Amount:
    files: int
    size: int  # bytes


def amount_of_media(session: Session, campaign_id: int) -> Amount:
    """How many different files a campaign shows."""
    files, size = session.execute(
        select(func.count(), func.coalesce(func.sum(CampaignMedia.size), 0)).where(
            CampaignMedia.campaign_id == campaign_id
        )
    ).one()
    return Amount(files, int(size))


@dataclass(frozen=True)
class Shown:
    """A source with the files beside it (`Item.media`)."""

    kind: str  # of item
    source: str
    media: list[dict[str, Any]]


def first_media(session: Session, campaign_id: int, most: int) -> list[Shown]:
    """The first sources with files, each once."""
    if amount_of_media(session, campaign_id).files == 0:
        return []
    found: dict[str, Shown] = {}
    items = select(Item.kind, Item.source, Item.media).where(Item.campaign_id == campaign_id)
    for kind, source, media in session.execute(items.order_by(Item.position)):
        if media and len(found) < most:
            key = repr((source, media))  # the same for each system, and in a control
            found.setdefault(key, Shown(kind, source, media))
    return list(found.values())


def find_media(session: Session, digest: str) -> KeptFile | None:
    """The file with this SHA-256, if a campaign shows it."""
    rows = session.scalars(select(CampaignMedia).where(CampaignMedia.digest == digest)).all()
    if not rows:
        return None
    return KeptFile(rows[0].type, rows[0].size, {row.campaign_id for row in rows})
