"""The tables of the study engine: studies, steps and what these leave (see `tables`)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from creamtea.store.columns import Base, one_of

STEP_STATES = ("pending", "ready", "running", "succeeded", "failed", "cancelled")
STUDY_STATES = ("queued", "running", "succeeded", "failed", "cancelled")
ERROR_KINDS = ("deterministic", "infrastructure", "unavailable", "timeout", "upstream")


class Controller(Base):
    """At most one row: the process that claims steps. Its fence grows with every take-over."""

    __tablename__ = "controller"
    __table_args__ = (CheckConstraint("id = 1", name="single"),)
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner: Mapped[str]  # as `creamtea.orders.controllers.own_name`
    address: Mapped[str] = mapped_column(default="")  # of its Ray cluster
    study_id: Mapped[int | None]  # the only study that it runs (`creamtea run`); None: every queued one
    fence: Mapped[int]
    lease_until: Mapped[datetime]

    def __str__(self) -> str:
        place, pid, start = self.owner.rsplit(":", 2)
        host = place.partition("/")[0]
        since = datetime.fromtimestamp(int(start), UTC)
        return f"process {pid} on {host}, since {since:%Y-%m-%d %H:%M:%S} UTC"


class StudyRow(Base):
    """One submission of a study; a study's name refers to the newest."""

    __tablename__ = "study"
    __table_args__ = (one_of("state", STUDY_STATES),)
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(index=True)
    config_hash: Mapped[str]  # sha256 of the canonical expanded spec
    spec: Mapped[dict[str, Any]] = mapped_column(JSON)  # expanded; plain JSON keeps the order of its keys
    state: Mapped[str]
    priority: Mapped[int] = mapped_column(default=0)
    code_version: Mapped[str]
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class StepRow(Base):
    """A content-addressed step; shared by every study that plans it."""

    __tablename__ = "step"
    __table_args__ = (one_of("state", STEP_STATES), one_of("error_kind", ERROR_KINDS))
    key: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    version: Mapped[int]
    params: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(index=True)
    resources: Mapped[dict[str, Any]]
    locations: Mapped[dict[str, Any]]  # a user's path as params give it -> its absolute path; not in the key
    attempts: Mapped[int] = mapped_column(default=0)
    fence: Mapped[int] = mapped_column(default=0)
    owner: Mapped[str | None]  # the controller that is running it
    lease_until: Mapped[datetime | None]
    not_before: Mapped[datetime | None]  # back-off after an infrastructure failure
    error_kind: Mapped[str | None]
    error: Mapped[str | None]
    facts: Mapped[dict[str, Any] | None]  # what the step reported, with device, node, seconds
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class StepInput(Base):
    __tablename__ = "step_input"
    step_key: Mapped[str] = mapped_column(ForeignKey("step.key", ondelete="CASCADE"), primary_key=True)
    role: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    input_key: Mapped[str] = mapped_column(ForeignKey("step.key"), index=True)


class StudyStep(Base):
    """A step's place in a study. `labels` say what it is there: {"system", "seed", "test_set", ...}."""

    __tablename__ = "study_step"
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"), primary_key=True)
    node: Mapped[str] = mapped_column(primary_key=True)  # e.g. "decode/softmax-beam4/1/test"
    step_key: Mapped[str] = mapped_column(ForeignKey("step.key"), index=True)
    position: Mapped[int]
    labels: Mapped[dict[str, Any]]


class StepFile(Base):
    """An output file of a step; `digest` names the object in the artefact store."""

    __tablename__ = "step_file"
    step_key: Mapped[str] = mapped_column(ForeignKey("step.key", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(index=True)  # sha256
    size: Mapped[int] = mapped_column(BigInteger)  # bytes


class Event(Base):
    """What happened to a step, for people: attempts, errors, retries, reuse."""

    __tablename__ = "event"
    id: Mapped[int] = mapped_column(primary_key=True)
    step_key: Mapped[str] = mapped_column(ForeignKey("step.key", ondelete="CASCADE"), index=True)
    at: Mapped[datetime]
    what: Mapped[str]
    detail: Mapped[str] = mapped_column(default="")


# ---------------------------------------------------------------- outputs and metrics


class Segment(Base):
    __tablename__ = "segment"
    step_key: Mapped[str] = mapped_column(ForeignKey("step.key", ondelete="CASCADE"), primary_key=True)
    index: Mapped[int] = mapped_column(primary_key=True)
    source: Mapped[str]
    reference: Mapped[str]
    idioms: Mapped[list[Any]]  # [{"name", "source": [from, to], "target": [from, to]}]


class Hypothesis(Base):
    __tablename__ = "hypothesis"
    step_key: Mapped[str] = mapped_column(ForeignKey("step.key", ondelete="CASCADE"), primary_key=True)
    index: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str]
    # None where no model of the study made the text
    score: Mapped[float | None]  # sum of the log scores of its tokens, </s> included
    length: Mapped[int | None]  # subwords, </s> not counted
    selected_size: Mapped[int | None]


class Metric(Base):
    __tablename__ = "metric"
    step_key: Mapped[str] = mapped_column(ForeignKey("step.key", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True, default="")
    value: Mapped[float | None]
    low: Mapped[float | None]
    high: Mapped[float | None]
    note: Mapped[str] = mapped_column(default="")
    detail: Mapped[dict[str, Any]]


class SegmentScore(Base):
    __tablename__ = "segment_score"
    step_key: Mapped[str] = mapped_column(ForeignKey("step.key", ondelete="CASCADE"), primary_key=True)
    index: Mapped[int] = mapped_column(primary_key=True)
    value: Mapped[float]


class Point(Base):
    __tablename__ = "point"
    step_key: Mapped[str] = mapped_column(ForeignKey("step.key", ondelete="CASCADE"), primary_key=True)
    series: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    x: Mapped[float]
    y: Mapped[float]
    label: Mapped[str] = mapped_column(default="")
