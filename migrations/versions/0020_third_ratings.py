"""Items may be rated once more, apart from the others, because their raters disagreed."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

BEFORE = "kind IN ('rated', 'random', 'repeat', 'bad-reference', 'tutorial', 'attention-check')"
AFTER = BEFORE.replace(")", ", 'third-rating')")


def upgrade() -> None:
    _replace_check(AFTER)


def downgrade() -> None:
    """The third ratings go with their items."""
    item = sa.table("item", sa.column("id"), sa.column("kind"))
    assignment = sa.table("assignment", sa.column("id"), sa.column("item_id"))
    rating = sa.table("rating", sa.column("assignment_id"))
    thirds = sa.select(item.c.id).where(item.c.kind == "third-rating")
    answers = sa.select(assignment.c.id).where(assignment.c.item_id.in_(thirds))
    # SQLite deletes nothing by itself while its tables are rebuilt
    op.execute(rating.delete().where(rating.c.assignment_id.in_(answers)))
    op.execute(assignment.delete().where(assignment.c.item_id.in_(thirds)))
    op.execute(item.delete().where(item.c.kind == "third-rating"))
    _replace_check(BEFORE)


def _replace_check(rule: str) -> None:
    with op.batch_alter_table("item") as batch:
        batch.drop_constraint(op.f("ck_item_kind"), type_="check")
        batch.create_check_constraint(op.f("ck_item_kind"), rule)
