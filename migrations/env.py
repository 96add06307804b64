"""Alembic's entry: creamtea passes the connection; `alembic revision --autogenerate` opens its own."""

from alembic import context
from sqlalchemy import Connection

from creamtea.settings import Settings
from creamtea.store.engines import make_engine, parse_url, writers
from creamtea.store.tables import Base


def migrate(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        # SQLite can hardly alter a table: Alembic builds a new one and moves the rows
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations()


passed = context.config.attributes.get("connection")
if passed is not None:
    migrate(passed)
else:
    with writers(make_engine(parse_url(Settings.load().database_url), migrating=True)).begin() as opened:
        migrate(opened)
