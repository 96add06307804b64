"""Answers of any protocol: a payload beside the score, scales of any length, protocols of plug-ins.

A draft holds "answers" where it held "steps".
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
OWN_PROTOCOLS = ("contrastive-da", "da", "da-sqm", "preference")
PROTOCOL = f"protocol IN ({', '.join(map(repr, OWN_PROTOCOLS))})"


def upgrade() -> None:
    with op.batch_alter_table("campaign") as batch:
        batch.drop_constraint(op.f("ck_campaign_protocol"), type_="check")
    with op.batch_alter_table("rating") as batch:
        batch.drop_constraint(op.f("ck_rating_step"), type_="check")
        batch.create_check_constraint(op.f("ck_rating_step"), "step >= 0")
        batch.add_column(sa.Column("payload", DOCUMENT, nullable=True))
    _change_drafts(lambda draft: _renamed(draft, "steps", "answers"))


def downgrade() -> None:
    """Campaigns that the fourth schema cannot hold go with their rows: those of a plug-in's protocol."""
    _delete_foreign_campaigns(op.get_bind())
    _change_drafts(lambda draft: _renamed(draft, "answers", "steps"))
    with op.batch_alter_table("rating") as batch:
        batch.drop_column("payload")
        batch.drop_constraint(op.f("ck_rating_step"), type_="check")
        batch.create_check_constraint(op.f("ck_rating_step"), "step BETWEEN 0 AND 100")
    with op.batch_alter_table("campaign") as batch:
        batch.create_check_constraint(op.f("ck_campaign_protocol"), PROTOCOL)


def _change_drafts(change: Any) -> None:
    assignment = sa.table("assignment", sa.column("id"), sa.column("draft", DOCUMENT))
    connection = op.get_bind()
    drafts = sa.select(assignment.c.id, assignment.c.draft).where(assignment.c.draft.is_not(None))
    for key, draft in connection.execute(drafts).all():
        if draft is not None:  # of JSON's null
            changed = sa.update(assignment).where(assignment.c.id == key).values(draft=change(draft))
            connection.execute(changed)


def _renamed(draft: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in draft.items()}


def _delete_foreign_campaigns(connection: sa.Connection) -> None:
    campaign = sa.table("campaign", sa.column("id"), sa.column("protocol"))
    item = sa.table("item", sa.column("id"), sa.column("campaign_id"), sa.column("original_id"))
    rater = sa.table("rater", sa.column("id"), sa.column("campaign_id"))
    assignment = sa.table("assignment", sa.column("id"), sa.column("item_id"))
    rating = sa.table("rating", sa.column("assignment_id"))
    event = sa.table("audit_event", sa.column("campaign_id"))
    token = sa.table("access_token", sa.column("id"), sa.column("campaign_id"), sa.column("rater_id"))
    web_session = sa.table("web_session", sa.column("token_id"))
    campaigns = sa.select(campaign.c.id).where(campaign.c.protocol.not_in(OWN_PROTOCOLS))
    raters = sa.select(rater.c.id).where(rater.c.campaign_id.in_(campaigns))
    items = sa.select(item.c.id).where(item.c.campaign_id.in_(campaigns))
    assignments = sa.select(assignment.c.id).where(assignment.c.item_id.in_(items))
    tokens = sa.select(token.c.id).where(
        sa.or_(token.c.rater_id.in_(raters), token.c.campaign_id.in_(campaigns))
    )
    for statement in (
        sa.delete(rating).where(rating.c.assignment_id.in_(assignments)),
        sa.delete(assignment).where(assignment.c.item_id.in_(items)),
        sa.update(item).where(item.c.campaign_id.in_(campaigns)).values(original_id=None),
        sa.delete(item).where(item.c.campaign_id.in_(campaigns)),
        sa.delete(event).where(event.c.campaign_id.in_(campaigns)),
        sa.delete(web_session).where(web_session.c.token_id.in_(tokens)),
        sa.delete(token).where(token.c.id.in_(tokens)),
        sa.delete(rater).where(rater.c.campaign_id.in_(campaigns)),
        sa.delete(campaign).where(campaign.c.id.in_(campaigns)),
    ):
        connection.execute(statement)
