"""A walk through a page by Tab alone: what is reached, and whether one sees where one is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from watched import script

MOST = 800  # presses

# inside open shadow roots, too; elements are numbered, so that one is known again
SCRIPT = script("tab_walk.js")


@dataclass
class Walk:
    reached: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)  # without a visible focus
    outside: list[str] = field(default_factory=list)  # not in view when focused
    trapped: str = ""

    def troubles(self) -> dict[str, Any]:
        found = {"missed": self.missed, "unseen": self.unseen, "outside": self.outside}
        return {name: what for name, what in (found | {"trapped in": self.trapped}).items() if what}


def walk(page: Any, controls: Sequence[str] = (), most: int = MOST) -> Walk:
    """From the top of the page to its end, once these controls are there: Streamlit loads some late."""
    page.evaluate(SCRIPT)
    there = "names => names.every((name) => walk.wanted().some(([, one]) => one.includes(name)))"
    page.wait_for_function(there, arg=list(controls))
    page.evaluate("walk.start()")
    wanted = dict(page.evaluate("walk.wanted()"))
    done, seen = Walk(), {}
    for _ in range(most):
        page.keyboard.press("Tab")
        here = page.evaluate("walk.here()")
        if here is None:
            break
        number, name, in_view = here
        if number in seen:  # around, or back and forth
            if number != next(iter(seen)):
                done.trapped = name
            break
        seen[number] = name
        if not in_view:
            done.outside.append(name)
    else:
        done.trapped = f"{most} elements without an end"
    page.evaluate("document.activeElement?.blur?.()")
    done.reached = list(seen.values())
    done.missed = [name for number, name in wanted.items() if number not in seen]
    done.unseen = page.evaluate("walk.unseen()")
    return done
