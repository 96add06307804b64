"""A campaign may rate some of its systems on each segment: which, and how probably, is stored."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

OBJECT = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("item") as batch:
        batch.add_column(sa.Column("block", OBJECT, nullable=True))


def downgrade() -> None:
    """Items stay, and show the same systems; with what probability these were drawn is lost."""
    with op.batch_alter_table("item") as batch:
        batch.drop_column("block")
