"""Where files and services are: from the environment, with defaults that need no set-up."""

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
SITE_PATH = re.compile(r"(/[A-Za-z0-9._~-]*[A-Za-z0-9_~-])*/?")
CHECKPOINT_PART_MB = 2000


@dataclass(frozen=True)
class Settings:
    home: Path  # CREAMTEA_HOME: the embedded database, artefacts and logs
    database_url: str  # CREAMTEA_DATABASE_URL
    artefacts: str  # CREAMTEA_ARTEFACTS: fsspec URL or folder, visible to every worker
    # CREAMTEA_CONTROLLER=service: a controller runs elsewhere, so that `submit` never starts one here, in a
    # container that goes away, say
    controller_is_service: bool
    comet_python: Path  # CREAMTEA_COMET_PYTHON: the interpreter of COMET's own environment
    # CREAMTEA_SCORERS: the file that says which programs score (creamtea.scorers). No file has this role by
    # its place: whoever unpacks a study of another person must not run that person's programs
    scorers: Path | None
    data: Path | None = None  # CREAMTEA_DATA: the folder that studies submitted on the page may read
    # CREAMTEA_TRY_OUT=off: the page of a study has no box to try a sentence in. It is only there if torch and
    # the artefacts are on the web app's machine
    try_out: bool = True

    @classmethod
    def load(cls) -> Settings:
        home = path_of(os.environ.get("CREAMTEA_HOME") or "creamtea-data").absolute()
        # `make install-comet` puts .venv-comet beside the environment that runs this
        beside = Path(sys.prefix).absolute().parent / ".venv-comet" / "bin" / "python"
        return cls(
            home=home,
            database_url=os.environ.get("CREAMTEA_DATABASE_URL") or f"sqlite:///{home / 'creamtea.db'}",
            artefacts=os.environ.get("CREAMTEA_ARTEFACTS") or str(home / "artefacts"),
            controller_is_service=_is_service(os.environ.get("CREAMTEA_CONTROLLER", "")),
            comet_python=path_of(os.environ.get("CREAMTEA_COMET_PYTHON") or str(beside)),
            scorers=path_of(scorers) if (scorers := os.environ.get("CREAMTEA_SCORERS")) else None,
            data=path_of(data).absolute() if (data := os.environ.get("CREAMTEA_DATA")) else None,
            try_out=_is_on(os.environ.get("CREAMTEA_TRY_OUT", "")),
        )


def path_of(value: str) -> Path:
    """A path with its `~`, which a shell leaves where the value is quoted or comes from a file."""
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise InputError(f"{value}: the home folder of `~` is not known; write the whole path") from None


# creamtea's own variables that workers need; the others are for the controller and the web app
FOR_WORKERS = ("CREAMTEA_HOME", "CREAMTEA_COMET_PYTHON", "CREAMTEA_SCORERS", "CREAMTEA_CHECKPOINT_PART_MB")


def is_withheld(name: str) -> bool:
    """Whether an environment variable is kept from workers: the database's password (also as PostgreSQL's own
    `PG…`), secrets of the web app, and all else of creamtea's that they do not need."""
    return name.startswith("PG") or (name.startswith("CREAMTEA_") and name not in FOR_WORKERS)


def child_environment() -> dict[str, str]:
    """This process's environment for a controller or a helper that it starts: without the web app's secrets,
    of which they need none."""
    secret = ("CREAMTEA_OIDC_", "CREAMTEA_METRICS_")
    return {name: value for name, value in os.environ.items() if not name.startswith(secret)}


def make_private(folder: Path) -> None:
    """Make the folder, if it is not there, as one that only its owner may enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def checkpoint_part() -> int:
    """Bytes above which a checkpoint is written in parts, of at most so many: CREAMTEA_CHECKPOINT_PART_MB."""
    value = os.environ.get("CREAMTEA_CHECKPOINT_PART_MB") or str(CHECKPOINT_PART_MB)
    try:
        megabytes = float(value)
    except ValueError:
        megabytes = 0.0
    if not 0 < megabytes < 1e9:
        raise InputError(f"CREAMTEA_CHECKPOINT_PART_MB={value}: write a number of megabytes above 0")
    return max(1, int(megabytes * 1e6))


def _is_service(value: str) -> bool:
    if value not in ("", "service"):
        raise InputError(f"CREAMTEA_CONTROLLER={value}: unknown value; write service, or leave it out")
    return value == "service"


def _is_on(value: str) -> bool:
    if value not in ("", "on", "off"):
        raise InputError(f"CREAMTEA_TRY_OUT={value}: unknown value; write on or off")
    return value != "off"


@dataclass(frozen=True)
class Serving:
    """How the web app meets the network."""

    # CREAMTEA_TRUSTED_PROXIES: addresses and networks whose X-Forwarded-For and -Proto are believed
    trusted_proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    max_connections: int = 500  # CREAMTEA_MAX_CONNECTIONS: pages that may be open at once, of all people

    @classmethod
    def load(cls) -> Serving:
        """InputError for what is not an address, a network or a number."""
        proxies, most = (
            os.environ.get(f"CREAMTEA_{name}", "").strip() for name in ("TRUSTED_PROXIES", "MAX_CONNECTIONS")
        )
        return cls(
            _networks(proxies) if proxies else cls.trusted_proxies,
            _count("CREAMTEA_MAX_CONNECTIONS", most) if most else cls.max_connections,
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


def _count(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and 0 < int(value[:9]) < 10**6):
        raise InputError(f"{name}={value[:20]}: write a number from 1 to 999999")
    return int(value)


@dataclass(frozen=True)
class SignIn:
    """The OpenID Connect provider with which raters and organisers may sign in."""

    issuer: str  # CREAMTEA_OIDC_ISSUER
    client_id: str  # CREAMTEA_OIDC_CLIENT_ID
    client_secret: str = field(repr=False)  # CREAMTEA_OIDC_CLIENT_SECRET

    @classmethod
    def load(cls) -> SignIn | None:
        """None if nothing is set; InputError if only some of it is, or if the issuer has no HTTPS."""
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
    """The address where people reach the web app, without a slash at its end. It may have a path.

    Raises InputError for an address to which nothing can be added: links are made of it.
    """
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    plain = fits and not (parts.query or parts.fragment or "?" in url or "#" in url or "@" in parts.netloc)
    if not plain or not SITE_PATH.fullmatch(parts.path):
        raise InputError(
            f"--url {url!r}: write the address at which people reach this server, e.g. "
            "https://rate.example.org or https://example.org/rate, without a query (?…) or a fragment (#…)"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def is_safe_url(url: str) -> bool:
    """Whether secrets may be sent there: HTTPS, or this machine."""
    try:
        parts = urlsplit(url)
        safe = ("https",) if parts.hostname not in LOOPBACK else ("https", "http")
    except ValueError:
        return False
    return bool(parts.hostname) and parts.scheme in safe


@cache
def processor_name() -> str:
    """The name that its maker gives it, where Linux says it; elsewhere what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
