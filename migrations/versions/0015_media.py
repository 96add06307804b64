"""Image, audio and video files beside the sources of items."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("item") as batch:
        batch.add_column(sa.Column("media", DOCUMENT, nullable=False, server_default="[]"))
    with op.batch_alter_table("item") as batch:
        batch.alter_column("media", server_default=None)
    op.create_table(
        "campaign_media",
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("campaign_id", "digest", name="pk_campaign_media"),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name="fk_campaign_media_campaign_id_campaign",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_campaign_media_digest", "campaign_media", ["digest"])


def downgrade() -> None:
    """Items stay; what was shown beside them goes, and `creamtea gc` finds the files."""
    op.drop_table("campaign_media")
    with op.batch_alter_table("item") as batch:
        batch.drop_column("media")
