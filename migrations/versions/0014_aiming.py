"""A campaign may aim: an item is rated with a probability that is stored."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("item") as batch:
        batch.add_column(sa.Column("chance", sa.Double(), nullable=True))
        batch.add_column(sa.Column("drawn", sa.Boolean(), nullable=True))


def downgrade() -> None:
    """Items that were passed over are open again."""
    with op.batch_alter_table("item") as batch:
        batch.drop_column("drawn")
        batch.drop_column("chance")
