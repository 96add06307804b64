"""docs/reference/campaign.md: every key of a campaign file."""

from __future__ import annotations

from creamtea.human.making.settings import CampaignDocument
from creamtea.reference.fields import fields_table, parts_of
from creamtea.reference.markup import GENERATED, paragraphs

INTRODUCTION = f"""\
# The campaign file

{GENERATED}

Every key of a campaign. The [guide for organisers](../guide-organiser.md) says when to use which.
`creamtea campaign init STUDY` writes a file with these comments, `creamtea campaign validate FILE` finds
every mistake, and `creamtea campaign schema` says the same to an editor.

- A key without a default is *required*, or is absent unless you write it.
- Files are named relative to the campaign's folder. `instructions`, `consent` and `questions` name a file if
  they are one line that ends in `.md` or `.txt`; otherwise they are the text itself.
- A key that would do nothing is a mistake: `strata` without `kind: stratified`, say."""


def markdown() -> str:
    blocks = {part.model: part.place for part in parts_of(CampaignDocument)}
    links = {model.__name__: f"#{place.replace('.', '')}" for model, place in blocks.items()}
    lines = [INTRODUCTION, "", "## The whole file", "", *paragraphs(CampaignDocument.__doc__)]
    lines += fields_table(CampaignDocument, links)
    for model, place in blocks.items():
        lines += [f"## {place}", "", *paragraphs(model.__doc__), *fields_table(model, links)]
    return "\n".join(lines).rstrip() + "\n"
