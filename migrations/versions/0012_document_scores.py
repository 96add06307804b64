"""A score of a whole document beside those of its segments; references that raters see."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("rating") as batch:
        batch.add_column(sa.Column("document_step", sa.Integer(), nullable=True))
    with op.batch_alter_table("item") as batch:
        batch.add_column(sa.Column("references", DOCUMENT, nullable=False, server_default="[]"))
    with op.batch_alter_table("item") as batch:
        batch.alter_column("references", server_default=None)


def downgrade() -> None:
    """Segments' scores stay; what was said of whole documents, and that references were shown, goes."""
    with op.batch_alter_table("item") as batch:
        batch.drop_column("references")
    with op.batch_alter_table("rating") as batch:
        batch.drop_column("document_step")
