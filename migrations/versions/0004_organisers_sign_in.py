"""An organiser who signs in stands in a column of its own, and a token may have no secret.

Before, such a token's digest was "sign-in:CAMPAIGN:SUBJECT".
"""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

STANDING = "sign-in:"
SIGN_IN = "subject IS NULL OR (digest IS NULL AND role = 'organiser' AND campaign_id IS NOT NULL)"
STANDS = sa.text("revoked_at IS NULL")


def upgrade() -> None:
    with op.batch_alter_table("access_token") as batch:
        batch.add_column(sa.Column("subject", sa.String(), nullable=True))
        batch.alter_column("digest", existing_type=sa.String(), nullable=True)
    token = _token()
    connection = op.get_bind()
    named = sa.select(token.c.id, token.c.digest).where(token.c.digest.startswith(STANDING))
    for key, digest in connection.execute(named).all():
        _, _, subject = digest.removeprefix(STANDING).partition(":")
        connection.execute(sa.update(token).where(token.c.id == key).values(subject=subject, digest=None))
    with op.batch_alter_table("access_token") as batch:
        batch.create_check_constraint(op.f("ck_access_token_sign_in"), SIGN_IN)
        batch.create_index(
            op.f("ix_access_token_campaign_id_subject"),
            ["campaign_id", "subject"],
            unique=True,
            postgresql_where=STANDS,
            sqlite_where=STANDS,
        )


def downgrade() -> None:
    """Of a person's tokens in a campaign the one that stands, or else the newest, keeps the name."""
    with op.batch_alter_table("access_token") as batch:
        batch.drop_index(op.f("ix_access_token_campaign_id_subject"))
        batch.drop_constraint(op.f("ck_access_token_sign_in"), type_="check")
    token = _token()
    connection = op.get_bind()
    without_secret = sa.select(token).where(token.c.digest.is_(None))
    those_that_stand_first = without_secret.order_by(token.c.revoked_at.is_not(None), token.c.id.desc())
    taken: set[str] = set()
    for row in connection.execute(those_that_stand_first).all():
        digest = f"{STANDING}{row.campaign_id}:{row.subject}"
        if row.subject is None or digest in taken:
            digest = secrets.token_hex(32)  # as long as a digest, and of no secret
        taken.add(digest)
        connection.execute(sa.update(token).where(token.c.id == row.id).values(digest=digest))
    with op.batch_alter_table("access_token") as batch:
        batch.alter_column("digest", existing_type=sa.String(), nullable=False)
        batch.drop_column("subject")


def _token() -> sa.TableClause:
    return sa.table(
        "access_token",
        sa.column("id", sa.Integer()),
        sa.column("digest", sa.String()),
        sa.column("campaign_id", sa.Integer()),
        sa.column("subject", sa.String()),
        sa.column("revoked_at"),
    )
