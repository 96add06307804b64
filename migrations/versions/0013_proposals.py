"""Items may have errors that are marked before a rater begins."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("item") as batch:
        batch.add_column(sa.Column("proposals", DOCUMENT, nullable=True))


def downgrade() -> None:
    """Items stay; what was proposed for them goes."""
    with op.batch_alter_table("item") as batch:
        batch.drop_column("proposals")
