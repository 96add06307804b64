"""A campaign's report: its facts and tables, and the section of blocks that they become."""

from __future__ import annotations

from dataclasses import dataclass

from creamtea import languages
from creamtea.contract.columns import Column
from creamtea.human.protocols import Protocol
from creamtea.report.columns import meanings
from creamtea.report.human.figures import figures
from creamtea.report.model import Block, Entry, Fact, Facts, Notes, Section, Table, Texts

# the other tables are shown when asked for
OPEN = ("means", "comparisons", "random_means", "random_comparisons")


@dataclass(frozen=True)
class CampaignReport:
    """What raters say of the systems of one campaign."""

    campaign: str
    test_set: str
    protocol: Protocol
    points: Column  # how points of the scale are shown
    state: str  # launched or closed
    progress: str
    baseline: str
    language_pair: tuple[str, str]
    signature: str  # every choice that a mean depends on
    notes: tuple[str, ...]  # what was rated, what was left out, how it was tested
    tables: tuple[Table, ...]  # none before the first rating that counts
    disagreements: tuple[Entry, ...]
    disputes: tuple[Entry, ...]

    def table(self, key: str) -> Table | None:
        return next((table for table in self.tables if table.key == key), None)

    def section(self) -> Section:
        more = tuple(table for table in self.tables if table.key not in OPEN)
        blocks: list[Block] = [table for table in self.tables if table.key in OPEN]
        blocks += figures(self.campaign, self.baseline, {table.key: table for table in self.tables})
        if more:
            title = "Agreement, ranks, metrics against human scores"
            blocks.append(Section("more", title, more, folded=True))
        blocks += [texts for texts in self._texts() if texts.entries]
        blocks.append(Notes("notes", self.notes))
        blocks += meanings(column for table in self.tables for column in table.columns)
        blocks.append(Facts("signature", "", (Fact("signature", self.signature, code=True),)))
        facts = (
            f"{self.protocol.title}, {self.protocol.scale_range}",
            f"{self.state}: {self.progress}",
            f"{self.test_set}, {languages.pair(*self.language_pair)}",
        )
        return Section(self.campaign, self.campaign, tuple(blocks), facts=facts, test_set=self.test_set)

    def _texts(self) -> tuple[Texts, Texts]:
        return (
            Texts(
                "disagreements",
                "Where human scores and metrics disagree most",
                "Standard scores over all rated outputs: the raters' less the metric's. Above 0 raters like "
                "the output better than the metric does.",
                self.disagreements,
                folded=True,
            ),
            Texts(
                "disputes",
                "Where raters disagree most",
                "The outputs whose ratings lie furthest apart, by their standard deviation.",
                self.disputes,
                folded=True,
            ),
        )
