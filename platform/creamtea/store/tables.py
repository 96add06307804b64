"""All tables: typed declarative models. Only migrations create or change the schema.

Enumerations are strings with a CHECK, times are UTC, every constraint has a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Generic, TypedDict, TypeVar

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    DateTime,
    ForeignKey,
    Index,
    MetaData,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC datetime on every database (SQLite has no time zones)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive datetime must not reach the database")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Json = JSON().with_variant(JSONB(), "postgresql")
JSON_OR_NULL = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(repr(str(v)) for v in values)})", name=column)


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: UtcDateTime(), dict[str, Any]: Json} | dict.fromkeys(
        (list[Any], list[int], list[str], list[list[int]]), Json
    )


class ItemKind(StrEnum):
    """The kinds of a campaign's items, for the table's CHECK and for `human/`."""

    RATED = "rated"
    RANDOM = "random"  # drawn at random, in addition to items chosen by disagreement
    REPEAT = "repeat"
    BAD_REFERENCE = "bad-reference"
    TUTORIAL = "tutorial"
    ATTENTION = "attention-check"
    THIRD = "third-rating"  # repeats an item whose raters disagreed (human/results/disputes.py)

    @property
    def label(self) -> str:
        """The kind on pages, above items or beside their number."""
        return f"{_NOUNS[self]}s" if self in _NOUNS else _STATES[self]

    @property
    def single(self) -> str:
        """The kind of one item on pages: "practice item"."""
        return _NOUNS.get(self) or f"item, {_STATES[self]}"

    def counted(self, count: int) -> str:
        """ "1 repeat", "2,000 repeats", "30 rated"."""
        return f"{count:,} {_NOUNS[self] if count == 1 and self in _NOUNS else self.label}"

    @property
    def rates_systems(self) -> bool:
        """Return True if ratings of this kind count in the statistics of systems."""
        return self in (ItemKind.RATED, ItemKind.RANDOM)

    @property
    def is_control(self) -> bool:
        """Return True if items of this kind are made from others, to check that raters read."""
        return self in (ItemKind.REPEAT, ItemKind.BAD_REFERENCE)

    @property
    def is_written(self) -> bool:
        """Return True if the organiser writes such items and their answers; every rater gets them."""
        return self in (ItemKind.TUTORIAL, ItemKind.ATTENTION)

    @property
    def is_planned(self) -> bool:
        """Return True if items of this kind count towards the planned ratings of a campaign."""
        return not self.is_written and self != ItemKind.THIRD


_STATES = {ItemKind.RATED: "rated", ItemKind.RANDOM: "drawn at random"}
_NOUNS = {
    ItemKind.REPEAT: "repeat",
    ItemKind.BAD_REFERENCE: "bad reference",
    ItemKind.TUTORIAL: "practice item",
    ItemKind.ATTENTION: "attention check",
    ItemKind.THIRD: "third rating",
}
SYSTEM_KINDS = tuple(kind for kind in ItemKind if kind.rates_systems)
CONTROL_KINDS = tuple(kind for kind in ItemKind if kind.is_control)
WRITTEN_KINDS = tuple(kind for kind in ItemKind if kind.is_written)
PLANNED_KINDS = tuple(kind for kind in ItemKind if kind.is_planned)


# ---------------------------------------------------------------- studies and steps


STEP_STATES = ("pending", "ready", "running", "succeeded", "failed", "cancelled")
STUDY_STATES = ("queued", "running", "succeeded", "failed", "cancelled")
ERROR_KINDS = ("deterministic", "infrastructure", "unavailable", "timeout", "upstream")


class Controller(Base):
    """The process that claims steps, in at most one row. The fence grows with every take-over."""

    __tablename__ = "controller"
    __table_args__ = (CheckConstraint("id = 1", name="single"),)
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner: Mapped[str]  # from `creamtea.orders.controllers.own_name`
    address: Mapped[str] = mapped_column(default="")  # the address of its Ray cluster
    study_id: Mapped[int | None]  # the only study that it runs (`creamtea run`); None: every queued study
    fence: Mapped[int]
    lease_until: Mapped[datetime]

    def __str__(self) -> str:
        place, pid, start = self.owner.rsplit(":", 2)
        host = place.partition("/")[0]
        since = datetime.fromtimestamp(int(start), UTC)
        return f"process {pid} on {host}, since {since:%Y-%m-%d %H:%M:%S} UTC"


class StudyRow(Base):
    """One submission of a study; a study's name means its newest submission."""

    __tablename__ = "study"
    __table_args__ = (one_of("state", STUDY_STATES),)
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(index=True)
    config_hash: Mapped[str]  # sha256 of the canonical expanded spec
    spec: Mapped[dict[str, Any]] = mapped_column(JSON)  # expanded; JSON, unlike JSONB, keeps the keys' order
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
    locations: Mapped[dict[str, Any]]  # path in `params` -> absolute path; not part of the key
    attempts: Mapped[int] = mapped_column(default=0)
    fence: Mapped[int] = mapped_column(default=0)
    owner: Mapped[str | None]  # the controller that is running it
    lease_until: Mapped[datetime | None]
    not_before: Mapped[datetime | None]  # end of the pause after an infrastructure failure
    error_kind: Mapped[str | None]
    error: Mapped[str | None]
    facts: Mapped[dict[str, Any] | None]  # the step's own facts, and its hardware, node and seconds
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
    """A step's place in a study. `labels` describe it there: {"system", "seed", "test_set", ...}."""

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
    """An event in a step's history, for people: an attempt, an error, a retry, reuse."""

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
    # None if no model of the study made the text
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


# ---------------------------------------------------------------- people and campaigns


ROLES = ("reader", "organiser", "rater")
CAMPAIGN_STATES = ("draft", "launched", "closed")


class AccessToken(Base):
    """A right to open sessions: expiring, scoped, revocable.

    A link's token is exchanged once for a session; its secret is stored hashed. Two tokens have no secret:
    the one behind a rater's sign-in, and an organiser's right to sign in, which names the person and exists
    once per campaign among tokens that are not revoked (access/sign_in.py).
    """

    __tablename__ = "access_token"
    __table_args__ = (
        one_of("role", ROLES),
        CheckConstraint(
            "subject IS NULL OR (digest IS NULL AND role = 'organiser' AND campaign_id IS NOT NULL)",
            name="sign_in",
        ),
        CheckConstraint("study_id IS NULL OR role = 'reader'", name="one_report"),
        Index(
            None,
            "campaign_id",
            "subject",
            unique=True,
            postgresql_where=text("revoked_at IS NULL"),
            sqlite_where=text("revoked_at IS NULL"),
        ),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str | None] = mapped_column(unique=True)  # sha256 of the secret; None: there is none
    role: Mapped[str]
    campaign_id: Mapped[int | None] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), index=True)
    rater_id: Mapped[int | None] = mapped_column(ForeignKey("rater.id", ondelete="CASCADE"), index=True)
    subject: Mapped[str | None]  # the organiser who signs in by OpenID Connect, as in Rater.subject
    # the only study whose report the reader may see
    study_id: Mapped[int | None] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    at_start: Mapped[bool] = mapped_column(default=False)  # an organiser's link that `creamtea serve` printed


class WebSession(Base):
    """The session of a browser with our cookie; the cookie's secret is stored hashed."""

    __tablename__ = "web_session"
    __table_args__ = (one_of("role", ROLES),)
    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(unique=True)
    token_id: Mapped[int] = mapped_column(ForeignKey("access_token.id", ondelete="CASCADE"), index=True)
    role: Mapped[str]
    rater_id: Mapped[int | None] = mapped_column(ForeignKey("rater.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class Campaign(Base):
    """A human evaluation of some systems of a study on one test set, or ratings made elsewhere."""

    __tablename__ = "campaign"
    __table_args__ = (one_of("state", CAMPAIGN_STATES),)
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    # None: texts from files, or imported
    study_id: Mapped[int | None] = mapped_column(ForeignKey("study.id"), index=True)
    programme: Mapped[str | None] = mapped_column(index=True)  # of which the campaign is one direction
    test_set: Mapped[str]
    protocol: Mapped[str]  # human/protocols, or a plug-in's
    systems: Mapped[list[str]]  # names, in the study's order; raters never see them
    source_language: Mapped[str]
    target_language: Mapped[str]
    ratings_per_item: Mapped[int]
    seed: Mapped[int] = mapped_column(BigInteger)
    instructions: Mapped[str]  # Markdown by the organiser
    settings: Mapped[dict[str, Any]]  # CampaignSettings of human/making/settings.py
    state: Mapped[str]
    # the plan registered at launch, with its digest
    registered: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)
    created_at: Mapped[datetime]
    launched_at: Mapped[datetime | None]
    closed_at: Mapped[datetime | None]

    @property
    def is_planned(self) -> bool:
        """False for ratings made elsewhere, whose planned number is unknown."""
        return self.registered is not None or self.state != "closed"


MediaEntry = dict[str, Any]  # a file of an item: ItemMedia of human/media.py
StoredSpan = dict[str, Any]  # an error as JSON: Span of human/protocols/spans.py
Payload = dict[str, Any]  # an answer without its score, in the protocol's own format (human/protocols)
Output = TypeVar("Output")  # a system: its number in the database, its name in files


class Block(TypedDict, Generic[Output]):
    """The systems that were drawn for a segment or document, if not all are rated."""

    systems: list[Output]
    chances: list[list[float]]  # probability that both systems are drawn; on the diagonal: that this one is


class KnownAnswer(TypedDict, total=False):
    """The expected answer of an item, and its explanation; keys are the numbers of outputs, as text."""

    steps: dict[str, list[int]]  # the lowest and the highest accepted score
    spans: dict[str, list[StoredSpan]]  # errors that must be marked: ExpectedSpan of human/protocols/spans.py
    explanation: str  # practice item: shown after the answer
    above: list[list[int]]  # attention check: pairs of outputs, the better one first
    warning: str | None  # attention check: shown after a wrong answer; None: nothing is shown
    spoilt: dict[str, str]  # bad reference whose systems are drawn later: text -> spoilt text


class Draft(TypedDict, total=False):
    """An answer that a rater has begun and not submitted."""

    answers: list[Any]  # one for each shown output, in the widget's format; None: not answered yet
    comment: str
    revision: int  # the revision that this draft prepares
    document: list[int | None]  # the scores of the whole document, in the first item of its last page


class Item(Base):
    """A source segment and one or more outputs, which a rater answers together.

    Identical texts are shown once and share the score. A control (repeat, bad reference) and a third rating
    name their original item. The items of one `page` follow one another; they are given out, drafted, saved
    and skipped together (human/rating).
    """

    __tablename__ = "item"
    __table_args__ = (
        UniqueConstraint("campaign_id", "position"),
        Index(None, "campaign_id", "page"),
        Index(None, "campaign_id", "kind", "position"),
        Index(None, "campaign_id", "document", "full"),
        # the index alone suffices to count the unrated items, and to find the next pages
        Index(
            "ix_item_left", "campaign_id", "full", "position", "id", "page", "kind", "original_id", "drawn"
        ),
        one_of("kind", tuple(ItemKind)),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"))
    position: Mapped[int]
    page: Mapped[int | None]  # the position of the page's first item; None: the item is alone on its page
    kind: Mapped[str]  # of ItemKind
    segment_index: Mapped[int]
    document: Mapped[str]
    source: Mapped[str]
    context: Mapped[list[str]]  # source segments before this one, if the campaign shows them
    references: Mapped[list[str]] = mapped_column(default=list)  # human translations that raters see
    media: Mapped[list[MediaEntry]] = mapped_column(Json, default=list)  # files of source and outputs
    systems: Mapped[list[int]]  # positions in Campaign.systems, one for each output
    outputs: Mapped[list[str]]
    weight: Mapped[float]  # in means, for stratified samples
    # adaptive designs: whether the item is rated; None before its turn, and in other campaigns
    drawn: Mapped[bool | None]
    output_drawn: Mapped[list[bool] | None] = mapped_column(JSON_OR_NULL)
    block: Mapped[Block[int] | None] = mapped_column(JSON_OR_NULL)  # None if all systems are rated
    original_id: Mapped[int | None] = mapped_column(ForeignKey("item.id", ondelete="CASCADE"), index=True)
    # whether the planned number of raters have answered it, without excluded raters; for a control or third
    # rating: whether its original is full (human/rating/places.py). False for items that every rater gets
    full: Mapped[bool] = mapped_column(default=False)
    degraded: Mapped[int | None]  # bad reference: the position in Campaign.systems whose text was spoilt
    guidance: Mapped[KnownAnswer | None] = mapped_column(JSON_OR_NULL)  # human/making/known_answers.py
    # errors marked beforehand, by the system's position (human/making/proposals.py)
    proposals: Mapped[dict[str, list[StoredSpan]] | None] = mapped_column(JSON_OR_NULL)

    @property
    def shown(self) -> list[int]:
        """The systems whose outputs raters see: all, or only the drawn ones."""
        return shown_of(self.systems, self.output_drawn)


def shown_of(outputs: Sequence[Output], drawn: Sequence[bool] | None) -> list[Output]:
    """Return the entries of drawn outputs; all if `drawn` is None."""
    return [output for output, shown in zip(outputs, drawn or [True] * len(outputs), strict=True) if shown]


class CampaignMedia(Base):
    """A file that items of the campaign show (`Item.media`).

    Its content is in the artefact store. Because of the row it is kept there, and the campaign's raters may
    fetch it.
    """

    __tablename__ = "campaign_media"
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True, index=True)  # sha256
    type: Mapped[str]  # MIME
    size: Mapped[int] = mapped_column(BigInteger)  # bytes


class Rater(Base):
    """A person under a pseudonym.

    Only `name`, `subject`, `participant` and `arrival` identify the person, and can be deleted.
    """

    __tablename__ = "rater"
    __table_args__ = (
        UniqueConstraint("campaign_id", "pseudonym"),
        UniqueConstraint("campaign_id", "subject"),
        UniqueConstraint("campaign_id", "participant"),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"))
    pseudonym: Mapped[str]
    name: Mapped[str | None]
    subject: Mapped[str | None]  # the person who signs in by OpenID Connect: issuer and subject
    participant: Mapped[str | None]  # the person's identifier on a recruiting platform
    # the other values in that platform's link
    arrival: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)
    answers: Mapped[dict[str, Any] | None] = mapped_column(JSON_OR_NULL)  # to the campaign's questions
    created_at: Mapped[datetime]
    consented_at: Mapped[datetime | None]
    excluded_at: Mapped[datetime | None]  # the ratings are kept, but do not count
    forgotten_at: Mapped[datetime | None]  # the identity was deleted


class Assignment(Base):
    """An item leased to a rater. `order`: the order in which its distinct outputs are shown, drawn once."""

    __tablename__ = "assignment"
    __table_args__ = (
        UniqueConstraint("rater_id", "item_id"),
        Index(
            "ix_assignment_unfinished",
            *("rater_id", "lease_until"),
            sqlite_where=text("submitted_at IS NULL AND skipped_at IS NULL"),
            postgresql_where=text("submitted_at IS NULL AND skipped_at IS NULL"),
        ),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    item_id: Mapped[int] = mapped_column(ForeignKey("item.id", ondelete="CASCADE"), index=True)
    rater_id: Mapped[int] = mapped_column(ForeignKey("rater.id", ondelete="CASCADE"))
    order: Mapped[list[list[int]]]  # for each shown output, the positions in Campaign.systems that share it
    draft: Mapped[Draft | None] = mapped_column(Json)
    lease_until: Mapped[datetime]
    created_at: Mapped[datetime]
    submitted_at: Mapped[datetime | None]  # the first revision
    skipped_at: Mapped[datetime | None]  # the place is free again; this rater never gets the item again
    skip_reason: Mapped[str]
    warned: Mapped[int] = mapped_column(default=0)  # wrong answers to an attention check that were not stored
    comment: Mapped[str]
    active_ms: Mapped[int | None]  # the time that the rater spent on it before the first revision


class Rating(Base):
    """One rater's answer about one system's output of one item.

    `step` is its score, in steps above the lowest value of the protocol's scale. `payload` holds the other
    parts of the answer, which the protocol defines (human/protocols). On a document's last page, the ratings
    of the first item may also hold the score of the whole document, which counts in no mean over segments.
    """

    __tablename__ = "rating"
    __table_args__ = (
        UniqueConstraint("assignment_id", "system", "revision"),
        CheckConstraint("step >= 0", name="step"),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignment.id", ondelete="CASCADE"), index=True)
    system: Mapped[int]  # position in Campaign.systems
    revision: Mapped[int]
    step: Mapped[int]
    payload: Mapped[Payload | None] = mapped_column(JSON_OR_NULL)
    document_step: Mapped[int | None]  # score of the system's whole document, if the campaign asks for it
    created_at: Mapped[datetime]


class Blame(Base):
    """Evidence of the origins of the errors in one output (`creamtea blame`).

    Labels are not stored: they are computed from the evidence and the valid ratings (blame/labels.py).
    """

    __tablename__ = "blame"
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    system: Mapped[int] = mapped_column(primary_key=True)  # position in Campaign.systems
    segment_index: Mapped[int] = mapped_column(primary_key=True)
    # the step that decoded the output
    step_key: Mapped[str] = mapped_column(ForeignKey("step.key", ondelete="CASCADE"), index=True)
    key: Mapped[str]  # sha256 of the evidence's inputs: if they change, it is gathered again
    evidence: Mapped[dict[str, Any]]


class AuditEvent(Base):
    """Who decided what in a campaign, when and why. Rows are only added."""

    __tablename__ = "audit_event"
    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), index=True)
    at: Mapped[datetime]
    actor: Mapped[str]  # "command line", or the organiser's session
    action: Mapped[str]  # access/audit.py
    rater_id: Mapped[int | None] = mapped_column(ForeignKey("rater.id", ondelete="SET NULL"), index=True)
    reason: Mapped[str]
    detail: Mapped[dict[str, Any]]
