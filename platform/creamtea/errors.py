"""The errors that a user can cause or encounter, each with one clear message.

The command line prints `str(error)` and exits with `error.exit_code`; it never shows a traceback for one of
these. A message names the place (file, line, key, step) and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from creamtea.wording import key_name


class CreamteaError(Exception):
    """Base of every error that is shown as one message. Exit code 1: something failed."""

    exit_code = 1


class InputError(CreamteaError):
    """Something that the user gave is wrong: a study, a file, an option, an address. Exit code 2.

    `about`: the field of a page's form that it concerns, if the message names no option.
    """

    exit_code = 2

    def __init__(self, message: str, about: str = "") -> None:
        super().__init__(message)
        self.about = about


def wrong(name: str, message: str) -> InputError:
    """Return the error about a key of a campaign file, which is a field on a page."""
    return InputError(f"{key_name(name)}: {message}", about=name)


class NotInDatabase(InputError):
    """No study or campaign of this name or number is in the database."""


@contextmanager
def about(field: str) -> Iterator[None]:
    """Give InputErrors from this block this field of a page's form, unless they have one."""
    try:
        yield
    except InputError as error:
        error.about = error.about or field
        raise


class StepError(CreamteaError):
    """A step failed for a reason that a retry cannot change (bad data, a NaN loss)."""


class StepUnavailable(CreamteaError):
    """A step needs something that this installation lacks (a COMET model, say).

    The report's cell shows this message. If the step is optional, as scores are, the study succeeds
    nevertheless. A later run tries again.
    """


class InfrastructureError(CreamteaError):
    """A worker, node or disk failed while the step ran: worth a retry after a pause."""


class DamagedCheckpoint(InfrastructureError):
    """A checkpoint does not hold what was saved, or parts of it are missing."""


class DamagedArtefact(InfrastructureError):
    """A stored file does not hold what was stored. The step that made it can make it again."""
