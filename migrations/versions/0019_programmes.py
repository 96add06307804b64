"""A campaign may be one direction of a programme."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("campaign") as batch:
        batch.add_column(sa.Column("programme", sa.String(), nullable=True))
        batch.create_index(batch.f("ix_campaign_programme"), ["programme"])


def downgrade() -> None:
    """Campaigns stay, each by itself."""
    with op.batch_alter_table("campaign") as batch:
        batch.drop_index(batch.f("ix_campaign_programme"))
        batch.drop_column("programme")
