"""A campaign that aims may show some of an item's outputs: each has a probability of its own."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

LIST = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("item") as batch:
        batch.add_column(sa.Column("output_chances", LIST, nullable=True))
        batch.add_column(sa.Column("output_drawn", LIST, nullable=True))


def downgrade() -> None:
    """Items stay, and show all of their outputs again; ratings stay as they are."""
    with op.batch_alter_table("item") as batch:
        batch.drop_column("output_drawn")
        batch.drop_column("output_chances")
