"""Items may be shown together on a page: the segments of a document."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

INDEX = "ix_item_campaign_id_page"


def upgrade() -> None:
    with op.batch_alter_table("item") as batch:
        batch.add_column(sa.Column("page", sa.Integer(), nullable=True))
        batch.create_index(op.f(INDEX), ["campaign_id", "page"])


def downgrade() -> None:
    """Items stay, each on a page of its own."""
    with op.batch_alter_table("item") as batch:
        batch.drop_index(op.f(INDEX))
        batch.drop_column("page")
