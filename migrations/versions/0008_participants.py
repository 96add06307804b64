"""A rater may be a participant of a recruiting platform, and may have answered questions about themselves."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
UNIQUE = "uq_rater_campaign_id_participant"


def upgrade() -> None:
    with op.batch_alter_table("rater") as batch:
        batch.add_column(sa.Column("participant", sa.String(), nullable=True))
        batch.add_column(sa.Column("arrival", DOCUMENT, nullable=True))
        batch.add_column(sa.Column("answers", DOCUMENT, nullable=True))
        batch.create_unique_constraint(op.f(UNIQUE), ["campaign_id", "participant"])


def downgrade() -> None:
    """Raters stay; who they are elsewhere and what they said of themselves goes."""
    with op.batch_alter_table("rater") as batch:
        batch.drop_constraint(op.f(UNIQUE), type_="unique")
        for column in ("answers", "arrival", "participant"):
            batch.drop_column(column)
