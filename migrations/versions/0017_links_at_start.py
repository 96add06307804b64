"""Which organisers' links a start of `creamtea serve` has printed, so that the next one withdraws them."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("access_token") as batch:
        batch.add_column(sa.Column("at_start", sa.Boolean(), nullable=False, server_default=sa.false()))
    with op.batch_alter_table("access_token") as batch:
        batch.alter_column("at_start", server_default=None)


def downgrade() -> None:
    """Links stay as they are."""
    with op.batch_alter_table("access_token") as batch:
        batch.drop_column("at_start")
