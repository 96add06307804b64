"""`creamtea schema`: the JSON Schema of a study file."""

from __future__ import annotations

import json

from creamtea.cli.printing import say

EXAMPLES = """Example: `creamtea schema > creamtea.schema.json`, and as first line of a study:

`# yaml-language-server: $schema=creamtea.schema.json`
"""


def schema() -> None:
    """Print the JSON Schema of a study, with which an editor completes keys and marks mistakes.

    It has the methods of the plug-ins that are installed here, too.
    """
    from creamtea.study.schema import study_schema

    say(json.dumps(study_schema(), ensure_ascii=False, indent=1))
