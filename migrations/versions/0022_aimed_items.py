"""Campaigns that aimed hold what was drawn, and how probably, as blocks, as adaptive designs do.

One number was drawn for all outputs of a segment (document), and each output was rated if the number was
below its probability: 1 while its comparison was open, `SETTLED` afterwards. So two outputs were drawn
together with the lower of both probabilities.
"""

from collections import defaultdict

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

SETTLED = 0.05
JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
NUMBER, LISTS = (
    sa.column("chance", sa.Double()),
    ("systems", "outputs", "block", "output_chances", "output_drawn"),
)
item = sa.table(
    "item",
    *map(sa.column, ("id", "campaign_id", "kind", "segment_index")),
    *(sa.column("drawn", sa.Boolean()), NUMBER),
    *(sa.column(name, JSON) for name in LISTS),
)


def upgrade() -> None:
    connection = op.get_bind()
    segments = defaultdict(list)
    aimed = sa.select(item).where(item.c.chance.is_not(None), item.c.kind.in_(("rated", "random")))
    for row in connection.execute(aimed):
        # an item with several texts was drawn by itself; where each has an item, they were drawn by segment
        alone = row.id if len(set(row.outputs)) > 1 else None
        segments[row.campaign_id, row.segment_index, alone].append(row)
    for rows in segments.values():
        chances = {}
        for row in rows:
            each = row.output_chances or [row.chance] * len(row.systems)
            shown = row.output_drawn or [row.drawn] * len(row.systems)
            chances |= {s: q for s, q, drawn in zip(row.systems, each, shown, strict=True) if drawn}
        block = {
            "systems": [*chances],
            "chances": [[min(a, b) for b in chances.values()] for a in chances.values()],
        }
        for row in rows:
            if row.drawn:
                shown = row.output_drawn or [True] * len(row.systems)
                values = {"block": block, "output_drawn": shown}
                connection.execute(item.update().where(item.c.id == row.id).values(values))
    with op.batch_alter_table("item") as batch:
        batch.drop_column("output_chances")
        batch.drop_column("chance")


def downgrade() -> None:
    """Probabilities of outputs that were not drawn come from the rule."""
    with op.batch_alter_table("item") as batch:
        batch.add_column(sa.Column("chance", sa.Double(), nullable=True))
        batch.add_column(sa.Column("output_chances", JSON, nullable=True))
    connection = op.get_bind()
    campaign = sa.table("campaign", sa.column("id"), sa.column("settings", JSON))
    aimed = [row.id for row in connection.execute(sa.select(campaign)) if row.settings.get("aim")]
    for number in aimed:
        own = item.c.campaign_id == number, item.c.drawn.is_not(None), item.c.kind.in_(("rated", "random"))
        for row in connection.execute(sa.select(item).where(*own)).all():
            block = row.block or {"systems": [], "chances": []}
            known = {system: block["chances"][at][at] for at, system in enumerate(block["systems"])}
            chances = [known.get(system, SETTLED) for system in row.systems]
            values = {"chance": max(chances), "block": None}
            if len(set(row.outputs)) > 1:
                values["output_chances"] = chances
            else:
                values["output_drawn"] = None
            connection.execute(item.update().where(item.c.id == row.id).values(values))
