"""`creamtea serve` and `creamtea link`: the web app, and links into it for readers."""

from __future__ import annotations

import contextlib
import importlib
import sys
import webbrowser
from datetime import timedelta
from shlex import quote
from typing import Annotated, Any

import typer

from creamtea.access import sessions
from creamtea.cli.printing import say
from creamtea.cli.workplace import existing_database, opened_database
from creamtea.errors import InputError
from creamtea.human.making.campaigns import summaries
from creamtea.human.protocols import PROTOCOLS
from creamtea.settings import LOOPBACK, SignIn, site_address
from creamtea.store.queries import find_study

PORT = 8501
DAYS = sessions.LINK_LIFETIME.days

Address = Annotated[
    str,
    typer.Option(
        "--url", metavar="URL", help="Where people reach the server, for the printed link; may have a path."
    ),
]

LINK_EXAMPLES = "Example: `creamtea link --role reader`"
SERVE_EXAMPLES = "Examples: `creamtea serve` · `creamtea serve --port 0 --no-browser`"


def serve(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free one.")
    ] = PORT,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for all addresses of this machine.")
    ] = LOOPBACK[0],
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where people reach the server; may have a path (behind a proxy)."),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the link in a browser.")] = True,
) -> None:
    """Serve the web app: studies, reports and rating. Prints an organiser's link that works once.

    Each start revokes the unused links of earlier starts. If the output is not a terminal, a link is
    printed only while no organiser can sign in: `creamtea link --role organiser` makes another.

    People need a link, or a sign-in by OpenID Connect if CREAMTEA_OIDC_ISSUER, CREAMTEA_OIDC_CLIENT_ID and
    CREAMTEA_OIDC_CLIENT_SECRET are set. Stop with Ctrl-C.
    """
    server = _webapp()
    sign_in = SignIn.load()
    url = None if url is None else site_address(url)
    # before the link: a start that fails revokes no link of the server that has the port
    server.check_address(host, port)
    terminal = sys.stdout.isatty()
    with opened_database() as database:
        secret = sessions.link_at_start(database, for_person=terminal)

    def ready(bound_port: int) -> None:
        shown = url or f"http://{f'[{host}]' if ':' in host else host}:{bound_port}"
        _greet(secret, shown, host)
        if browser and terminal and secret is not None:
            webbrowser.open(link_to(shown, secret))

    with contextlib.suppress(KeyboardInterrupt):
        server.serve(host, port, ready, sign_in, url)
    say("stopped")


def link(
    role: Annotated[str, typer.Option(metavar="reader|organiser", help="Who the link is for.")] = "reader",
    url: Address = f"http://{LOOPBACK[0]}:{PORT}",
    study: Annotated[
        str | None, typer.Option(metavar="NAME", help="A reader's link to this study's report alone.")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="How long the link is valid.")] = DAYS,
) -> None:
    """Print a link for one more person or browser. It works once, within 14 days (or --days).

    With --study it opens the report of that study's newest submission and nothing else, until --days are
    over.

    A rater's link comes from `creamtea campaign link`.
    """
    url = site_address(url)
    if role not in ("reader", "organiser"):
        raise InputError(f"--role must be reader or organiser, not {role!r}")
    if study is not None and role != "reader":
        raise InputError("--study makes a reader's link: leave out --role, or write --role reader")
    with existing_database() as database:
        study_id = None
        if study is not None:
            with database.session() as session:
                study_id = find_study(session, study).id
        secret = sessions.create_link(database, role, study_id=study_id, lifetime=timedelta(days=days))
    say(link_to(url, secret))


def link_to(url: str, secret: str) -> str:
    """Return the address that opens the app with this secret. Browsers do not send what follows the `#`."""
    return f"{url}/enter#{secret}"


def _greet(secret: str | None, url: str, host: str) -> None:
    """Print where the app is. `secret`: of an organiser's link; None if no link is needed."""
    if secret is None:
        command = f"creamtea link --role organiser --url {quote(url)}"
        say(f"creamtea is served at {url}; a link for one more organiser: {command}\n")
    else:
        say(f"creamtea is served at {url}; open this link, it works once:\n\n    {link_to(url, secret)}\n")
    if host not in LOOPBACK:
        say(
            f"Other machines can reach {host}. Put HTTPS in front of it: over plain HTTP others on the "
            "network can read what is shown.\n",
            err=True,
        )
    for broken in PROTOCOLS.added().broken:
        say(
            f"The rating protocol {broken.kind!r} of {broken.plugin} cannot be used ({broken.reason}): "
            "update the plug-in or uninstall it\n",
            err=True,
        )
    with opened_database() as database:
        launched = [campaign.name for campaign in summaries(database) if campaign.state == "launched"]
    if launched:  # raters cannot see campaigns in other states
        say(
            f"A link for a rater: creamtea campaign link {quote(launched[-1])} --rater NAME "
            f"--url {quote(url)}\n"
        )
    sys.stdout.flush()


def _webapp() -> Any:
    """Import the web app's server, which the platform knows only by name."""
    try:
        return importlib.import_module("creamtea_webapp.server")
    except ModuleNotFoundError as missing:
        raise InputError(
            f"the web app needs {missing.name}, which is not installed: pip install 'creamtea[webapp]'"
        ) from None
