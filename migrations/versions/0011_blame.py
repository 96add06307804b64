"""Where the errors that raters marked come from."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "blame",
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("system", sa.Integer(), nullable=False),
        sa.Column("segment_index", sa.Integer(), nullable=False),
        sa.Column("step_key", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("evidence", JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaign.id"],
            name=op.f("fk_blame_campaign_id_campaign"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["step_key"], ["step.key"], name=op.f("fk_blame_step_key_step"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("campaign_id", "system", "segment_index", name=op.f("pk_blame")),
    )
    op.create_index(op.f("ix_blame_step_key"), "blame", ["step_key"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_blame_step_key"), table_name="blame")
    op.drop_table("blame")
