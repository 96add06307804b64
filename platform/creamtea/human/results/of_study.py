"""Which campaigns are about a study's outputs.

A study may be submitted again and again: with another metric its outputs are the same, and with another text
in the same file they are not. What decides is which steps made the outputs that raters saw.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human.making.outputs import first_node
from creamtea.store.queries import OUTPUTS, Node, study_nodes
from creamtea.store.tables import Campaign, StudyRow


def campaigns_of(session: Session, study: StudyRow) -> tuple[list[Campaign], list[Campaign]]:
    """The launched campaigns of all submissions of a study's name, oldest first: those about outputs of this
    submission, and those about others."""
    launched = session.scalars(
        select(Campaign)
        .join(StudyRow, StudyRow.id == Campaign.study_id)
        .where(StudyRow.name == study.name, Campaign.state != "draft")
        .order_by(Campaign.id)
    ).all()
    nodes: dict[int, list[Node]] = {}
    own = [campaign for campaign in launched if is_about(session, campaign, study, nodes)]
    return own, [campaign for campaign in launched if campaign not in own]


def is_about(
    session: Session, campaign: Campaign, study: StudyRow, known: dict[int, list[Node]] | None = None
) -> bool:
    """Whether the outputs that raters see are made by steps of this submission. `known`: the nodes of
    submissions, each of which is read once."""
    assert campaign.study_id is not None  # of ratings made elsewhere, which are of no study
    if campaign.study_id == study.id:
        return True
    read: dict[int, list[Node]] = {} if known is None else known
    for number in (campaign.study_id, study.id):
        if number not in read:
            read[number] = study_nodes(session, number, *OUTPUTS)
    return rated_steps(campaign, read[campaign.study_id]) == rated_steps(campaign, read[study.id])


def rated_steps(campaign: Campaign, nodes: Sequence[Node]) -> dict[str, str | None]:
    """By system the key of the step whose outputs a campaign of this submission would rate; it follows from
    the test set and all that the outputs depend on."""
    first = {
        system: first_node(nodes, system=system, test_set=campaign.test_set) for system in campaign.systems
    }
    return {system: None if node is None else node.key for system, node in first.items()}
