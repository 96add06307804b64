"""Settings from the environment, such as places of files and services; the defaults need no set-up."""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

from creamtea.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
# a name in ASCII, as browsers send it, or IPv6 without its brackets
SITE_HOST = re.compile(r"[\w-]+(\.[\w-]+)*\.?|[0-9a-f:.]+", re.ASCII)
SITE_PATH = re.compile(r"(/[A-Za-z0-9._~-]*[A-Za-z0-9_~-])*/?")
CHECKPOINT_PART_MB = 2000


@dataclass(frozen=True)
class Settings:
    home: Path  # CREAMTEA_HOME: the embedded database, artefacts and logs
    database_url: str  # CREAMTEA_DATABASE_URL
    artefacts: str  # CREAMTEA_ARTEFACTS: fsspec URL or folder, visible to every worker
    # CREAMTEA_CONTROLLER=service: a controller runs elsewhere, so `submit` never starts one here, for example
    # in a short-lived container
    controller_is_service: bool
    comet_python: Path  # CREAMTEA_COMET_PYTHON: the interpreter of COMET's own environment
    # CREAMTEA_SCORERS: the file that defines scoring programs (creamtea.scorers). It has no default place:
    # whoever unpacks another person's study must not run that person's programs
    scorers: Path | None
    data: Path | None = None  # CREAMTEA_DATA: the folder that studies submitted on the page may read
    # CREAMTEA_TRY_OUT=off: the page of a study has no box to try a sentence in. The box also needs torch and
    # the artefacts on the web app's machine
    try_out: bool = True

    @classmethod
    def load(cls) -> Settings:
        home = path_of(os.environ.get("CREAMTEA_HOME") or "creamtea-data").absolute()
        # `make install-comet` puts .venv-comet beside this environment
        beside = Path(sys.prefix).absolute().parent / ".venv-comet" / "bin" / "python"
        return cls(
            home=home,
            database_url=os.environ.get("CREAMTEA_DATABASE_URL") or sqlite_url(home / "creamtea.db"),
            artefacts=os.environ.get("CREAMTEA_ARTEFACTS") or str(home / "artefacts"),
            controller_is_service=_chosen("CREAMTEA_CONTROLLER", ("service",), "service, or leave it out")
            == "service",
            comet_python=path_of(os.environ.get("CREAMTEA_COMET_PYTHON") or str(beside)),
            scorers=path_of(scorers) if (scorers := os.environ.get("CREAMTEA_SCORERS")) else None,
            data=path_of(data).absolute() if (data := os.environ.get("CREAMTEA_DATA")) else None,
            try_out=_chosen("CREAMTEA_TRY_OUT", ("on", "off"), "on or off") != "off",
        )


def sqlite_url(path: Path) -> str:
    """Return the address of a file; characters that mean something in an address are quoted."""
    return f"sqlite:///{path}".replace("%", "%25").replace("?", "%3F")


def path_of(value: str) -> Path:
    """Expand `~` in a path. (A shell does not if the value is quoted or comes from a file.)"""
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise InputError(f"{value}: the home folder of `~` is not known; write the whole path") from None


# creamtea's own variables that workers need; the others are for the controller and the web app
FOR_WORKERS = ("CREAMTEA_HOME", "CREAMTEA_COMET_PYTHON", "CREAMTEA_SCORERS", "CREAMTEA_CHECKPOINT_PART_MB")


def is_withheld(name: str) -> bool:
    """Return True for environment variables that workers do not get.

    These are the database's password (also PostgreSQL's own variables, `PG…`), the web app's secrets, and all
    variables of creamtea that workers do not need.
    """
    return name.startswith("PG") or (name.startswith("CREAMTEA_") and name not in FOR_WORKERS)


def child_environment() -> dict[str, str]:
    """Return this process's environment without the web app's secrets, for a controller or helper."""
    secret = ("CREAMTEA_OIDC_", "CREAMTEA_METRICS_")
    return {name: value for name, value in os.environ.items() if not name.startswith(secret)}


def make_private(folder: Path) -> None:
    """Make a folder that only its owner may enter, unless it exists."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def checkpoint_part() -> int:
    """Return the largest part of a checkpoint in bytes: CREAMTEA_CHECKPOINT_PART_MB."""
    value = os.environ.get("CREAMTEA_CHECKPOINT_PART_MB") or str(CHECKPOINT_PART_MB)
    try:
        megabytes = float(value)
    except ValueError:
        megabytes = 0.0
    if not 0 < megabytes < 1e9:
        raise InputError(f"CREAMTEA_CHECKPOINT_PART_MB={value}: write a number of megabytes above 0")
    return max(1, int(megabytes * 1e6))


def _chosen(name: str, values: tuple[str, ...], allowed: str) -> str:
    """Return a variable's value, "" if it is not set. Raise InputError for an unknown value."""
    value = os.environ.get(name, "")
    if value not in ("", *values):
        raise InputError(f"{name}={value}: unknown value; write {allowed}")
    return value


@dataclass(frozen=True)
class Serving:
    """Network settings of the web app."""

    # CREAMTEA_TRUSTED_PROXIES: addresses and networks whose X-Forwarded-For and -Proto are trusted
    trusted_proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    max_connections: int = 500  # CREAMTEA_MAX_CONNECTIONS: pages that may be open at once, in total

    @classmethod
    def load(cls) -> Serving:
        """Read the environment. Raise InputError for an invalid address, network or number."""
        proxies, most = (
            os.environ.get(f"CREAMTEA_{name}", "").strip() for name in ("TRUSTED_PROXIES", "MAX_CONNECTIONS")
        )
        if most and not (most.isascii() and most.isdigit() and 0 < int(most[:9]) < 10**6):
            raise InputError(f"CREAMTEA_MAX_CONNECTIONS={most[:20]}: write a number from 1 to 999999")
        return cls(
            _networks(proxies) if proxies else cls.trusted_proxies,
            int(most) if most else cls.max_connections,
        )


def _networks(value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    for name in names:
        try:
            ip_network(name)
        except ValueError:
            raise InputError(
                f"CREAMTEA_TRUSTED_PROXIES: {name!r} is not an address or a network; write the proxies' "
                "addresses with commas between, e.g. 10.0.0.5,172.16.0.0/12"
            ) from None
    return names


@dataclass(frozen=True)
class SignIn:
    """The OpenID Connect provider with which raters and organisers may sign in."""

    issuer: str  # CREAMTEA_OIDC_ISSUER
    client_id: str  # CREAMTEA_OIDC_CLIENT_ID
    client_secret: str = field(repr=False)  # CREAMTEA_OIDC_CLIENT_SECRET

    @classmethod
    def load(cls) -> SignIn | None:
        """Read the environment; return None if nothing is set.

        Raises InputError if only some variables are set, or if the issuer has no HTTPS.
        """
        names = [f"CREAMTEA_OIDC_{name}" for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET")]
        values = [os.environ.get(name, "").strip() for name in names]
        if not any(values):
            return None
        if missing := [name for name, value in zip(names, values, strict=True) if not value]:
            raise InputError(
                f"sign-in by OpenID Connect needs {' and '.join(missing)} too: set all three of "
                f"{', '.join(names)}, or none"
            )
        issuer, client_id, client_secret = values
        if not is_safe_url(issuer):
            raise InputError(f"{names[0]} must be an address with https://, not {issuer!r}")
        return cls(issuer, client_id, client_secret)


def site_address(url: str) -> str:
    """Return the address at which people reach the web app, without a final slash; it may have a path.

    Raises InputError for an address to which no path can be appended, since links are built from it.
    """
    try:
        parts = urlsplit(url)
        named = SITE_HOST.fullmatch(parts.hostname or "") is not None
        fits = parts.scheme in ("http", "https") and named and parts.port != 0
    except ValueError:
        fits = False
    plain = fits and not (parts.query or parts.fragment or "?" in url or "#" in url or "@" in parts.netloc)
    if not plain or not SITE_PATH.fullmatch(parts.path):
        raise InputError(
            f"--url {url!r}: write the address at which people reach this server, e.g. "
            "https://rate.example.org or https://example.org/rate, without a query (?…) or a fragment (#…), "
            "and the host in ASCII (xn--…)"
        )
    # as browsers write it, which the gate compares
    host = parts.netloc.lower().removesuffix(":443" if parts.scheme == "https" else ":80")
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


def is_safe_url(url: str) -> bool:
    """Return True if secrets may be sent to the address: HTTPS, or this machine."""
    try:
        parts = urlsplit(url)
        safe = ("https",) if parts.hostname not in LOOPBACK else ("https", "http")
    except ValueError:
        return False
    return bool(parts.hostname) and parts.scheme in safe


@cache
def processor_name() -> str:
    """Return the processor's name: from Linux if possible, else from Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
