"""Attention checks: items that the organiser wrote, and how often a rater was warned at one."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

BEFORE = "kind IN ('rated', 'random', 'repeat', 'bad-reference', 'tutorial')"
AFTER = "kind IN ('rated', 'random', 'repeat', 'bad-reference', 'tutorial', 'attention-check')"


def upgrade() -> None:
    _replace_check(AFTER)
    with op.batch_alter_table("assignment") as batch:
        batch.add_column(sa.Column("warned", sa.Integer(), nullable=False, server_default="0"))
    with op.batch_alter_table("assignment") as batch:
        batch.alter_column("warned", server_default=None)


def downgrade() -> None:
    """The checks go, and what raters answered to them."""
    item = sa.table("item", sa.column("id"), sa.column("kind"))
    assignment = sa.table("assignment", sa.column("id"), sa.column("item_id"))
    rating = sa.table("rating", sa.column("assignment_id"))
    checks = sa.select(item.c.id).where(item.c.kind == "attention-check")
    answers = sa.select(assignment.c.id).where(assignment.c.item_id.in_(checks))
    # SQLite deletes nothing by itself while its tables are rebuilt
    op.execute(rating.delete().where(rating.c.assignment_id.in_(answers)))
    op.execute(assignment.delete().where(assignment.c.item_id.in_(checks)))
    op.execute(item.delete().where(item.c.kind == "attention-check"))
    with op.batch_alter_table("assignment") as batch:
        batch.drop_column("warned")
    _replace_check(BEFORE)


def _replace_check(rule: str) -> None:
    with op.batch_alter_table("item") as batch:
        batch.drop_constraint(op.f("ck_item_kind"), type_="check")
        batch.create_check_constraint(op.f("ck_item_kind"), rule)
