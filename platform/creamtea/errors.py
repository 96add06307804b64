"""The errors that a user can cause or encounter, each with one clear message.

The command line prints `str(error)` and exits with `error.exit_code`; it never shows a traceback for one of
these. A message names the place (file, line, key, step) and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from creamtea.wording import key_name, option


class CreamteaError(Exception):
    """Base class of errors that are shown as one message. Exit code 1: something failed."""

    exit_code = 1


class InputError(CreamteaError):
    """A mistake in the user's input: a study, a file, an option, an address. Exit code 2.

    `about`: the field of a page's form with the mistake, if the message names no option.
    """

    exit_code = 2

    def __init__(self, message: str, about: str = "") -> None:
        super().__init__(message)
        self.about = about


def wrong(name: str, message: str) -> InputError:
    """Return an error about a key of a campaign file, which is also a field on a page."""
    return InputError(f"{key_name(name)}: {message}", about=name)


def wrong_option(name: str, message: str, value: object = "") -> InputError:
    """Return the error about an option of a command, or about its value; on a page it is a field."""
    return InputError(f"{option(name)}{f' {value}' if value else ''}: {message}", about=name)


class NotInDatabase(InputError):
    """No study or campaign of this name or number is in the database."""


@contextmanager
def about(field: str) -> Iterator[None]:
    """Set `about` of InputErrors from this block to a field of a page's form, unless they have one."""
    try:
        yield
    except InputError as error:
        error.about = error.about or field
        raise


class StepError(CreamteaError):
    """A step failed for a reason that a retry cannot change (bad data, a NaN loss)."""


class StepUnavailable(CreamteaError):
    """A step needs something that this installation lacks, such as a COMET model.

    The report's cell shows this message. If the step is optional (scores are), the study succeeds anyway. A
    later run tries again.
    """


class InfrastructureError(CreamteaError):
    """A worker, node or disk failed while the step ran: worth a retry after a pause."""


class DamagedCheckpoint(InfrastructureError):
    """A checkpoint's content differs from the saved content, or parts of it are missing."""


class DamagedArtefact(InfrastructureError):
    """A file's content differs from the stored content. The step that made it can make it again."""
