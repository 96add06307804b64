"""Studies, steps and what they produced."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "controller",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("lease_until", MOMENT, nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_controller_single")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_controller")),
    )
    op.create_table(
        "step",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("params", DOCUMENT, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("resources", DOCUMENT, nullable=False),
        sa.Column("locations", DOCUMENT, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("lease_until", MOMENT, nullable=True),
        sa.Column("not_before", MOMENT, nullable=True),
        sa.Column("error_kind", sa.String(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("facts", DOCUMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT, nullable=True),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.CheckConstraint(
            "error_kind IN ('deterministic', 'infrastructure', 'unavailable', 'timeout', 'upstream')",
            name=op.f("ck_step_error_kind"),
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'ready', 'running', 'succeeded', 'failed', 'cancelled')",
            name=op.f("ck_step_state"),
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_step")),
    )
    op.create_index(op.f("ix_step_state"), "step", ["state"], unique=False)
    op.create_table(
        "study",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("config_hash", sa.String(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("code_version", sa.String(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name=op.f("ck_study_state")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
    )
    op.create_index(op.f("ix_study_name"), "study", ["name"], unique=False)
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("step_key", sa.String(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("what", sa.String(), nullable=False),
        sa.Column("detail", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["step_key"], ["step.key"], name=op.f("fk_event_step_key_step"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_index(op.f("ix_event_step_key"), "event", ["step_key"], unique=False)
    op.create_table(
        "hypothesis",
        sa.Column("step_key", sa.String(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("selected_size", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["step_key"], ["step.key"], name=op.f("fk_hypothesis_step_key_step"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("step_key", "index", name=op.f("pk_hypothesis")),
    )
    op.create_table(
        "metric",
        sa.Column("step_key", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("detail", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["step_key"], ["step.key"], name=op.f("fk_metric_step_key_step"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("step_key", "name", "subject", name=op.f("pk_metric")),
    )
    op.create_table(
        "point",
        sa.Column("step_key", sa.String(), nullable=False),
        sa.Column("series", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("x", sa.Double(), nullable=False),
        sa.Column("y", sa.Double(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["step_key"], ["step.key"], name=op.f("fk_point_step_key_step"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("step_key", "series", "position", name=op.f("pk_point")),
    )
    op.create_table(
        "segment",
        sa.Column("step_key", sa.String(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("reference", sa.String(), nullable=False),
        sa.Column("idioms", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["step_key"], ["step.key"], name=op.f("fk_segment_step_key_step"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("step_key", "index", name=op.f("pk_segment")),
    )
    op.create_table(
        "segment_score",
        sa.Column("step_key", sa.String(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["step_key"], ["step.key"], name=op.f("fk_segment_score_step_key_step"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("step_key", "index", name=op.f("pk_segment_score")),
    )
    op.create_table(
        "step_file",
        sa.Column("step_key", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["step_key"], ["step.key"], name=op.f("fk_step_file_step_key_step"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("step_key", "name", name=op.f("pk_step_file")),
    )
    op.create_index(op.f("ix_step_file_digest"), "step_file", ["digest"], unique=False)
    op.create_table(
        "step_input",
        sa.Column("step_key", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("input_key", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["input_key"], ["step.key"], name=op.f("fk_step_input_input_key_step")),
        sa.ForeignKeyConstraint(
            ["step_key"], ["step.key"], name=op.f("fk_step_input_step_key_step"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("step_key", "role", "position", name=op.f("pk_step_input")),
    )
    op.create_index(op.f("ix_step_input_input_key"), "step_input", ["input_key"], unique=False)
    op.create_table(
        "study_step",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("step_key", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("labels", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(["step_key"], ["step.key"], name=op.f("fk_study_step_step_key_step")),
        sa.ForeignKeyConstraint(
            ["study_id"], ["study.id"], name=op.f("fk_study_step_study_id_study"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("study_id", "node", name=op.f("pk_study_step")),
    )
    op.create_index(op.f("ix_study_step_step_key"), "study_step", ["step_key"], unique=False)


def downgrade() -> None:
    op.drop_table("study_step")
    op.drop_table("step_input")
    op.drop_table("step_file")
    op.drop_table("segment_score")
    op.drop_table("segment")
    op.drop_table("point")
    op.drop_table("metric")
    op.drop_table("hypothesis")
    op.drop_table("event")
    op.drop_table("study")
    op.drop_table("step")
    op.drop_table("controller")
