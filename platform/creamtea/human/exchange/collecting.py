"""A campaign out of the database as `Content`."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from creamtea.human.campaigns import find_campaign
from creamtea.human.exchange.content import AnswerContent, Content, ItemContent, RaterContent, ScoreContent
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, Item, Rater, Rating, StudyRow


def collect(database: Database, name: str) -> Content:
    """Everything of a campaign that an export holds, from one snapshot of the database.

    Raises InputError where there is no such campaign.
    """
    with database.session() as session:
        campaign = find_campaign(session, name)
        study = None if campaign.study_id is None else session.get_one(StudyRow, campaign.study_id).name
        items = list(
            session.scalars(select(Item).where(Item.campaign_id == campaign.id).order_by(Item.position))
        )
        raters = list(
            session.scalars(select(Rater).where(Rater.campaign_id == campaign.id).order_by(Rater.id))
        )
        return Content(
            name=campaign.name,
            study=study,
            test_set=campaign.test_set,
            protocol=campaign.protocol,
            systems=tuple(campaign.systems),
            source_language=campaign.source_language,
            target_language=campaign.target_language,
            ratings_per_item=campaign.ratings_per_item,
            seed=campaign.seed,
            instructions=campaign.instructions,
            settings=campaign.settings,
            state=campaign.state,
            registered=campaign.registered,
            created_at=campaign.created_at,
            launched_at=campaign.launched_at,
            closed_at=campaign.closed_at,
            raters=tuple(_person(rater) for rater in raters),
            items=tuple(_shown(campaign, items)),
            answers=tuple(_answers(session, campaign, items, raters)),
        )


def _person(rater: Rater) -> RaterContent:
    return RaterContent(
        pseudonym=rater.pseudonym,
        created_at=rater.created_at,
        consented_at=rater.consented_at,
        excluded_at=rater.excluded_at,
        forgotten_at=rater.forgotten_at,
    )


def _shown(campaign: Campaign, items: list[Item]) -> list[ItemContent]:
    positions = {item.id: item.position for item in items}
    return [
        ItemContent(
            position=item.position,
            kind=item.kind,
            segment=item.segment_index,
            document=item.document,
            source=item.source,
            context=tuple(item.context),
            systems=tuple(campaign.systems[system] for system in item.systems),
            outputs=tuple(item.outputs),
            weight=item.weight,
            original=None if item.original_id is None else positions[item.original_id],
            degraded=None if item.degraded is None else campaign.systems[item.degraded],
            guidance=item.guidance,
        )
        for item in items
    ]


def _answers(
    session: Session, campaign: Campaign, items: list[Item], raters: list[Rater]
) -> list[AnswerContent]:
    """Answered and skipped items; what a rater is still on is nobody's answer yet."""
    positions = {item.id: item.position for item in items}
    pseudonyms = {rater.id: rater.pseudonym for rater in raters}
    ended = (
        select(Assignment)
        .join(Item, Item.id == Assignment.item_id)
        .where(
            Item.campaign_id == campaign.id,
            or_(Assignment.submitted_at.is_not(None), Assignment.skipped_at.is_not(None)),
        )
    )
    scores: dict[int, list[ScoreContent]] = defaultdict(list)
    ratings = (
        select(Rating)
        .join(Assignment, Assignment.id == Rating.assignment_id)
        .join(Item, Item.id == Assignment.item_id)
        .where(Item.campaign_id == campaign.id)
        .order_by(Rating.revision, Rating.system)
    )
    for rating in session.scalars(ratings):
        scores[rating.assignment_id].append(
            ScoreContent(
                campaign.systems[rating.system],
                rating.revision,
                rating.step,
                rating.created_at,
                rating.payload,
            )
        )
    answers = [
        AnswerContent(
            item=positions[assignment.item_id],
            rater=pseudonyms[assignment.rater_id],
            order=tuple(tuple(campaign.systems[system] for system in group) for group in assignment.order),
            assigned_at=assignment.created_at,
            submitted_at=assignment.submitted_at,
            skipped_at=assignment.skipped_at,
            skip_reason=assignment.skip_reason,
            comment=assignment.comment,
            active_ms=assignment.active_ms,
            scores=tuple(scores[assignment.id]),
        )
        for assignment in session.scalars(ended)
    ]
    return sorted(answers, key=lambda answer: (answer.item, answer.rater))
