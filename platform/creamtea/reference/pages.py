"""The pages by their names."""

from __future__ import annotations

from collections.abc import Callable

from creamtea.reference import campaign, commands, environment, measures, methods, study

PAGES: dict[str, Callable[[], str]] = {
    "study.md": study.markdown,
    "campaign.md": campaign.markdown,
    "methods.md": methods.markdown,
    "measures.md": measures.markdown,
    "commands.md": commands.markdown,
    "environment.md": environment.markdown,
}
