"""A hypothesis that no model of the study made has a text, and no score, length and selected size."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

OF_A_MODEL = {"score": sa.Double(), "length": sa.Integer(), "selected_size": sa.Integer()}


def upgrade() -> None:
    _allow_null(True)


def downgrade() -> None:
    """The texts that the fifth schema cannot hold go; the steps that had read them are to be run again."""
    columns = [sa.column(name) for name in OF_A_MODEL]
    hypothesis = sa.table("hypothesis", sa.column("step_key"), *columns)
    without = sa.or_(*(column.is_(None) for column in columns))
    step = sa.table("step", sa.column("key"), sa.column("state"))
    readers = sa.select(hypothesis.c.step_key).where(without)
    op.execute(sa.update(step).where(step.c.key.in_(readers)).values(state="cancelled"))
    op.execute(sa.delete(hypothesis).where(without))
    _allow_null(False)


def _allow_null(allowed: bool) -> None:
    with op.batch_alter_table("hypothesis") as batch:
        for name, kind in OF_A_MODEL.items():
            batch.alter_column(name, existing_type=kind, nullable=allowed)
