"""Whether creamtea takes a command: parsed by the app itself, which runs nothing of it."""

from typer._click.exceptions import ClickException
from typer.main import get_command

from creamtea.cli.main import app

COMMAND = get_command(app)


def parse(words: list[str], where: str) -> None:
    """The words behind `creamtea`. AssertionError, which says `where`, for what it does not take."""
    command, name = COMMAND, "creamtea"
    try:
        while True:
            context = command.make_context(name, list(words))
            if not hasattr(command, "commands"):
                return
            name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
    except ClickException as error:
        raise AssertionError(f"{where}: {error.format_message()}") from error
