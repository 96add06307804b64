"""A reader's link may open the report of one study only."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

ONE_REPORT = "study_id IS NULL OR role = 'reader'"


def upgrade() -> None:
    with op.batch_alter_table("access_token") as batch:
        batch.add_column(sa.Column("study_id", sa.Integer(), nullable=True))
        batch.create_foreign_key(
            op.f("fk_access_token_study_id_study"), "study", ["study_id"], ["id"], ondelete="CASCADE"
        )
        batch.create_check_constraint(op.f("ck_access_token_one_report"), ONE_REPORT)
        batch.create_index(op.f("ix_access_token_study_id"), ["study_id"], unique=False)


def downgrade() -> None:
    """Links to one report go, and with them their sessions: without a study they would open all of them."""
    token = sa.table("access_token", sa.column("id"), sa.column("study_id"))
    sessions = sa.table("web_session", sa.column("token_id"))
    of_reports = sa.select(token.c.id).where(token.c.study_id.is_not(None))
    op.execute(sa.delete(sessions).where(sessions.c.token_id.in_(of_reports)))
    op.execute(sa.delete(token).where(token.c.study_id.is_not(None)))
    with op.batch_alter_table("access_token") as batch:
        batch.drop_index(op.f("ix_access_token_study_id"))
        batch.drop_constraint(op.f("ck_access_token_one_report"), type_="check")
        batch.drop_constraint(op.f("fk_access_token_study_id_study"), type_="foreignkey")
        batch.drop_column("study_id")
