"""Items know whether all their places are taken for good, so that the next page is found without counting."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

UNFINISHED = sa.text("submitted_at IS NULL AND skipped_at IS NULL")
LEFT = ["campaign_id", "full", "position", "id", "page", "kind", "original_id", "drawn"]


def upgrade() -> None:
    with op.batch_alter_table("item") as batch:
        batch.add_column(sa.Column("full", sa.Boolean(), nullable=False, server_default=sa.false()))
    with op.batch_alter_table("item") as batch:
        batch.alter_column("full", server_default=None)
        batch.create_index(batch.f("ix_item_campaign_id_kind_position"), ["campaign_id", "kind", "position"])
        batch.create_index(batch.f("ix_item_campaign_id_document_full"), ["campaign_id", "document", "full"])
        batch.create_index("ix_item_left", LEFT)
    op.create_index(
        "ix_assignment_unfinished",
        "assignment",
        ["rater_id", "lease_until"],
        sqlite_where=UNFINISHED,
        postgresql_where=UNFINISHED,
    )
    campaign = sa.table("campaign", sa.column("id"), sa.column("ratings_per_item"))
    item = sa.table(
        "item", *map(sa.column, ("id", "campaign_id", "original_id")), sa.column("full", sa.Boolean())
    )
    rater = sa.table("rater", sa.column("id"), sa.column("excluded_at"))
    assignment = sa.table("assignment", *map(sa.column, ("item_id", "rater_id", "submitted_at")))
    answered = (
        sa.select(item.c.id)
        .join(campaign, campaign.c.id == item.c.campaign_id)
        .join(assignment, assignment.c.item_id == item.c.id)
        .join(rater, rater.c.id == assignment.c.rater_id)
        .where(assignment.c.submitted_at.is_not(None), rater.c.excluded_at.is_(None))
        .group_by(item.c.id, campaign.c.ratings_per_item)
        .having(sa.func.count() >= campaign.c.ratings_per_item)
        .scalar_subquery()
    )
    own = sa.func.coalesce(item.c.original_id, item.c.id)
    op.execute(item.update().where(own.in_(answered)).values(full=sa.true()))


def downgrade() -> None:
    """Nothing is lost: it follows from the answers."""
    op.drop_index("ix_assignment_unfinished", "assignment")
    with op.batch_alter_table("item") as batch:
        batch.drop_index("ix_item_left")
        batch.drop_index(batch.f("ix_item_campaign_id_document_full"))
        batch.drop_index(batch.f("ix_item_campaign_id_kind_position"))
        batch.drop_column("full")
