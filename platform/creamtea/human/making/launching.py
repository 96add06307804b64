"""The states of a campaign, draft → launched ⇄ closed, and the registration at its launch.

At its launch a campaign's systems, items, settings and planned analysis are fixed: `Campaign.registered` has
them or their SHA-256, with a digest of the whole. The application never changes items or settings afterwards;
`changes` detects whether somebody has changed them in the database.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

import creamtea
from creamtea.access import audit
from creamtea.document.values import digest
from creamtea.errors import InputError
from creamtea.human.making.settings import settings_of
from creamtea.human.protocols import origin_of
from creamtea.human.rating.places import item_kinds
from creamtea.stats.incomplete import LOOKS as LOOKS_IN_BLOCKS
from creamtea.stats.sequential import ALPHA, BURN_IN, LOOKS
from creamtea.stats.verdict import deciding_test
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Campaign, Item, ItemKind, StudyRow
from creamtea.wording import key_name


def planned_analysis(in_blocks: bool, adaptive: bool) -> dict[str, Any]:
    """Return the analysis that is registered; docs and report explain each part.

    `in_blocks`: whether pages show only some of the systems. `adaptive`: whether systems with open ranks come
    more often.
    """
    beside = ["signed-rank test (Pratt)", "sign-flip permutation test"]
    looks = f"up to {LOOKS} looks from {BURN_IN} complete documents or segments on, by the power family of"
    looks += " error spending (all of alpha), these raters only"
    if in_blocks:
        beside, early_end = [], "none"
        if adaptive:
            parts = ", ".join(f"{part:.0%}" for part in LOOKS_IN_BLOCKS)
            early_end = f"at looks after {parts} of the documents (segments, where they stand alone), by the "
            early_end += "power family of error spending"
    else:
        early_end = f"by a group-sequential test of {looks}"
    return {
        "items": "kinds rated and random, by their weights; controls tell of raters only"
        + ("; two systems that shared a page with the chance q weigh 1/√q on it" if adaptive else ""),
        "ratings": "the last revision of each rater who is not excluded; a system's score on an item is the "
        "mean over raters",
        "comparisons": "each system with the baseline",
        "primary": deciding_test(in_blocks),
        "beside": beside,
        "alpha": ALPHA,
        "correction": "single-step, over all pairs of systems" if in_blocks else "Holm over the comparisons",
        "interval": 0.95,
        "early end": early_end,
        "verdict": "better, worse or no difference larger than delta where the interval lies beside 0 or "
        "within -delta and delta; with one rater, or outputs shown one at a time, undecided"
        if in_blocks
        else "better or worse where the corrected primary test rejects; no difference larger than "
        "delta where the 90 % interval lies within -delta and delta; both also with raters drawn; otherwise "
        "undecided",
    }


def launch(database: Database, name: str, actor: str = audit.COMMAND_LINE) -> dict[str, Any]:
    """Open a draft to its raters and return its registration. InputError unless it is a draft."""
    with database.transaction() as session:
        rule = "only a draft can be launched; make one with `creamtea campaign create`"
        campaign = _step(session, name, "draft", "launched", rule)
        if settings_of(campaign.settings).aim:
            raise InputError(
                f"campaign {name!r} was made with sample.aim, which {key_name('sample.design')} adaptive has "
                "replaced: make the draft anew without it"
            )
        campaign.launched_at = database.now(session)
        campaign.registered = registered = registration(session, campaign)
        audit.record(session, campaign.id, actor, audit.LAUNCHED, detail={"digest": registered["digest"]})
    return registered


def close(database: Database, name: str, actor: str = audit.COMMAND_LINE, reason: str = "") -> None:
    """End the rating and keep everything that is stored. InputError unless the campaign is launched."""
    with database.transaction() as session:
        rule = "only a launched campaign can be closed; launch it first"
        campaign = _step(session, name, "launched", "closed", rule)
        campaign.closed_at = database.now(session)
        audit.record(session, campaign.id, actor, audit.CLOSED, reason=reason)


def reopen(database: Database, name: str, actor: str, reason: str) -> None:
    """Let raters continue in a closed campaign; its report says so.

    InputError without a reason, for a campaign that is not closed, and for an import.
    """
    if not reason.strip():
        raise InputError(f"give a reason to open campaign {name!r} again: the log keeps it", about="reason")
    with database.transaction() as session:
        campaign = _step(session, name, "closed", "launched", "only a closed campaign can be opened again")
        if campaign.registered is None:
            raise InputError(f"campaign {name!r} was rated elsewhere, and nobody can rate in it here")
        campaign.closed_at = None
        audit.record(session, campaign.id, actor, audit.REOPENED, reason=reason.strip())


def _step(session: Session, name: str, old: str, new: str, rule: str) -> Campaign:
    """Move a campaign from one state to the next. InputError if it is in another state."""
    step = update(Campaign).where(Campaign.name == name, Campaign.state == old).values(state=new)
    moved: Campaign | None = session.scalar(step.returning(Campaign))
    if moved is None:
        raise InputError(f"{in_state(find_campaign(session, name))}: {rule}")
    return moved


def in_state(campaign: Campaign) -> str:
    """Return the beginning of a message about a campaign's state: "campaign 'first' is a draft"."""
    return f"campaign {campaign.name!r} is {'a draft' if campaign.state == 'draft' else campaign.state}"


def registration(session: Session, campaign: Campaign) -> dict[str, Any]:
    """Return the snapshot that a launch freezes: the stored campaign and the versions that made it.

    InputError if the plug-in with the campaign's protocol is missing.
    """
    settings = settings_of(campaign.settings)
    in_blocks = settings.block_size(len(campaign.systems)) is not None
    content = {
        **_stored_content(session, campaign),
        "analysis": planned_analysis(in_blocks, settings.design == "adaptive"),
        "creamtea": creamtea.__version__,
        "protocol_from": asdict(origin_of(campaign.protocol)),
    }
    return {**content, "digest": digest(content)}


def _stored_content(session: Session, campaign: Campaign) -> dict[str, Any]:
    """Return the part of a registration that can be read again from the campaign's rows."""
    settings, of_study = settings_of(campaign.settings), None
    if campaign.study_id is not None:
        study = session.get_one(StudyRow, campaign.study_id)
        of_study = {"name": study.name, "number": study.id, "config_hash": study.config_hash}
    kinds = item_kinds(session, campaign.id)
    return {
        "study": of_study,
        "test_set": campaign.test_set,
        "protocol": campaign.protocol,
        "systems": list(campaign.systems),
        "baseline": settings.baseline,
        "languages": [campaign.source_language, campaign.target_language],
        "ratings_per_item": campaign.ratings_per_item,
        "seed": campaign.seed,
        "delta": settings.delta,
        "settings": campaign.settings,
        "instructions": digest(campaign.instructions),
        "items": {
            "kinds": {kind: count for kind, count in kinds.items() if kind != ItemKind.THIRD},
            "digest": items_digest(session, campaign.id),
        },
    }


REGISTERED = (
    *("position", "kind", "document", "source", "context"),
    *("systems", "outputs", "weight", "degraded", "guidance"),
)


def items_digest(session: Session, campaign_id: int) -> str:
    """Return the SHA-256 of a campaign's items.

    Third ratings are left out, because they come later. An original is identified by its position.
    """
    registered = select(Item).where(Item.campaign_id == campaign_id, Item.kind != ItemKind.THIRD)
    items = session.scalars(registered.order_by(Item.position)).all()
    position_of = {item.id: item.position for item in items}
    return digest(
        [
            {
                **{column: getattr(item, column) for column in REGISTERED},
                # no key for empty values, so that older registrations keep their digests
                **({} if item.page is None else {"page": item.page}),
                **({"references": item.references} if item.references else {}),
                **({"media": item.media} if item.media else {}),
                **({} if item.proposals is None else {"proposals": item.proposals}),
                # an adaptive design spoils a text and draws blocks later
                **({"outputs": [], "degraded": None} if "spoilt" in (item.guidance or {}) else {}),
                **({} if item.block is None or item.output_drawn is not None else {"block": item.block}),
                "segment": item.segment_index,
                "original": None if item.original_id is None else position_of[item.original_id],
            }
            for item in items
        ]
    )


def changes(session: Session, campaign: Campaign) -> list[str]:
    """Return the registered parts that have changed since the launch.

    A campaign without a registration (a draft or an import) has no such parts. An imported export is compared
    with the registration of the original campaign.
    """
    registered = campaign.registered or {}
    content = {part: value for part, value in registered.items() if part != "digest"}
    if registered and digest(content) != registered["digest"]:
        return ["registration"]
    return list(changed_parts(session, campaign))


def changed_parts(session: Session, campaign: Campaign) -> dict[str, tuple[Any, Any]]:
    """Return the parts of a registration that differ from the campaign's rows: as registered, and now."""
    registered, now = campaign.registered or {}, _stored_content(session, campaign)
    if campaign.study_id is None:
        del now["study"]  # an import's study is in another database
    return {
        part: (registered[part], value)
        for part, value in now.items()
        if part in registered and registered[part] != value
    }
