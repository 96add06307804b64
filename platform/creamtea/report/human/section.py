"""A campaign's report: its ratings and tables, and the section of blocks that they become."""

from __future__ import annotations

from dataclasses import dataclass

from creamtea import languages
from creamtea.human.results.ratings import Ratings
from creamtea.report.columns import meanings
from creamtea.report.human.figures import figures
from creamtea.report.human.material import Judged
from creamtea.report.model import Block, Fact, Facts, Notes, Section, Table, Texts
from creamtea.report.vega import Styles
from creamtea.stats.crossed import FEW_RATERS
from creamtea.wording import counted

# the other tables are shown when asked for
OPEN = (
    "means",
    "comparisons",
    "documents",
    "random_means",
    "random_comparisons",
    "looks",
    "origins",
    "repairs",
)


@dataclass(frozen=True)
class CampaignReport:
    """What raters say of the systems of one campaign."""

    judged: Judged
    tables: tuple[Table, ...]  # none before the first rating that counts
    texts: tuple[Texts, ...]
    styles: Styles  # of its systems

    def section(self) -> Section:
        campaign, baseline = self.judged.ratings.campaign, self.judged.systems[self.judged.baseline]
        more = tuple(table for table in self.tables if table.key not in OPEN)
        blocks: list[Block] = [table for table in self.tables if table.key in OPEN]
        blocks += figures(campaign.name, baseline, {table.key: table for table in self.tables}, self.styles)
        if more:
            title = "Agreement, ranks, metrics against human scores"
            blocks.append(Section("more", title, more, folded=True))
        blocks += [*self.texts, Notes("notes", tuple(_notes(self.judged)))]
        blocks += meanings(column for table in self.tables for column in table.columns)
        blocks.append(Facts("signature", "", (Fact("signature", signature(self.judged), code=True),)))
        pair = languages.pair(campaign.source_language, campaign.target_language)
        facts = (
            f"{campaign.protocol.title}, {campaign.protocol.scale_range}",
            f"{campaign.state}: {progress(self.judged.ratings)}",
            f"{campaign.test_set}, {pair}",
        )
        return Section(campaign.name, campaign.name, tuple(blocks), facts=facts, test_set=campaign.test_set)


# ---------------------------------------------------------------- words


def progress(ratings: Ratings) -> str:
    """As "360 of 400 item ratings (90 %) by 2 raters"; of ratings made elsewhere without what was planned."""
    raters = len(ratings.raters)
    by = f"by {counted(raters, 'rater')}"
    if not ratings.campaign.is_planned:
        return f"{counted(ratings.submitted, 'item rating')} {by}"
    share = f" ({100 * ratings.submitted / ratings.wanted:.0f} %)" if ratings.wanted else ""
    return f"{ratings.submitted:,} of {counted(ratings.wanted, 'item rating')}{share} {by}"


def signature(whole: Judged) -> str:
    facts = whole.ratings.campaign
    shown, between = facts.settings.show_reference, facts.settings.differ_between
    return "|".join(
        [
            f"campaign:{facts.name}",
            f"protocol:{facts.protocol.name}",
            f"items:{whole.ratings.items}",
            *([f"select:{facts.settings.select}"] if facts.settings.select else []),
            *([f"reference-shown:{','.join(map(str, shown))}"] if shown else []),
            *([f"differ-between:{','.join(between)}"] if between else []),
            f"raters:{len(whole.ratings.raters)}",
            f"ratings-an-item:{facts.ratings_per_item}",
            f"delta:{whole.delta:g}",
            f"seed:{facts.seed}",
            f"state:{facts.state}",
        ]
    )


def _notes(whole: Judged) -> list[str]:
    ratings = whole.ratings
    out = ratings.left_out
    if not len(ratings.value) and not out.excluded_ratings + out.control_ratings + out.skipped:
        return ["The campaign has no ratings yet."]
    notes = [_left_out(ratings)]
    weighted = "Means, differences and their tests are weighted; the signed-rank test takes no weights."
    if len(set(ratings.weight.tolist())) > 1:
        notes.append(f"Items have weights. {weighted}")
    if (ratings.chance < 1).any():
        notes.append(
            "Once a verdict was settled or given up, its system was rated with a small chance q only: what "
            f"was rated then weighs 1/√q. {weighted}"
        )
    if shown := ratings.campaign.settings.show_reference:
        which = "a reference" if len(shown) == 1 else f"{len(shown)} references"
        notes.append(f"Raters saw {which} beside each source.")
    if whole.documents is not None:
        groups = len(set(whole.documents.tolist()))
        if ratings.together == "segment":
            notes.append(
                f"Pairs of a segment are grouped: intervals of means are over {counted(groups, 'segment')}."
            )
        else:
            notes.append(
                "Segments of a document are grouped: intervals and tests are over "
                f"{counted(groups, 'document')}, each of which weighs as much as its segments."
            )
    if whole.protocol.relative:
        notes.append(whole.protocol.ratio_note)
    if len(ratings.raters) == 1:
        notes.append("One rater: how others would judge, and how far they would agree, is unknown.")
    if 1 < len(ratings.raters) < FEW_RATERS:
        notes.append(
            f"{len(ratings.raters)} raters are too few to show how raters differ: intervals that allow for "
            "other raters are wide, and verdicts, which depend on them, often undecided."
        )
    if not len(ratings.value):
        notes.append("No rating of the systems counts yet.")
    return notes


def _left_out(ratings: Ratings) -> str:
    """What does not count, each with its reason; never silently nothing."""
    out = ratings.left_out
    parts = {
        f"ratings by excluded raters ({out.excluded_raters})": out.excluded_ratings,
        "ratings that a rater revised later": out.replaced_ratings,
        "ratings of controls and tutorial items": out.control_ratings,
        "items that a rater skipped": out.skipped,
        "items without a rating": out.unrated_items,
        "items that were passed over, as their verdicts were settled": out.passed_over,
    }
    listed = [f"{words}: {number:,}" for words, number in parts.items() if number]
    if out.excluded_raters and not out.excluded_ratings:
        listed.append(f"excluded raters without ratings: {out.excluded_raters:,}")
    what = f"{counted(len(ratings.value), 'rating')} count{'s' * (len(ratings.value) == 1)}"
    if out.incomplete_items:
        wanted = ratings.campaign.ratings_per_item
        what += f", with fewer than {wanted} raters on {out.incomplete_items:,} of the items"
    return f"{what}. Left out: {'; '.join(listed)}." if listed else f"{what}. Nothing was left out."
