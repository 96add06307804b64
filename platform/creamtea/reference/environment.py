"""docs/reference/environment.md: the variables of the environment that creamtea reads."""

from __future__ import annotations

from typing import NamedTuple

from creamtea.reference.tables import GENERATED, table
from creamtea.settings import CHECKPOINT_PART_MB, Serving

INTRODUCTION = f"""\
# Environment

{GENERATED}

The variables of the environment that creamtea reads; it has no file of settings.
Secrets belong here, never in a study or on a command line."""


class Variable(NamedTuple):
    name: str
    default: str
    meaning: str
    field: str = ""  # of the settings in the code


OIDC = "of the OpenID Connect provider with which people may sign in; set all three, or none"

SECTIONS: dict[str, tuple[Variable, ...]] = {
    "Where things are": (
        Variable(
            "CREAMTEA_HOME",
            "`./creamtea-data`",
            "folder of the SQLite database, the artefacts and the logs",
            "Settings.home",
        ),
        Variable(
            "CREAMTEA_DATABASE_URL",
            "SQLite in `CREAMTEA_HOME`",
            "the database: `postgresql+psycopg://USER:PASSWORD@HOST/NAME` for several machines or raters",
            "Settings.database_url",
        ),
        Variable(
            "CREAMTEA_ARTEFACTS",
            "`artefacts` in `CREAMTEA_HOME`",
            "folder or object store (`s3://…`) of the steps' files, which every worker must reach",
            "Settings.artefacts",
        ),
    ),
    "Running studies": (
        Variable("RAY_ADDRESS", "this machine", "`HOST:PORT` of a Ray cluster, as `--address`"),
        Variable(
            "CREAMTEA_CONTROLLER",
            "empty",
            "`service`: a controller runs elsewhere, and `creamtea submit` never starts one",
            "Settings.controller_is_service",
        ),
        Variable(
            "CREAMTEA_CHECKPOINT_PART_MB",
            f"{CHECKPOINT_PART_MB:,}",
            "MB above which a checkpoint is written in parts, of at most so many, by all workers of a "
            "training",
        ),
    ),
    "Metrics of other programs": (
        Variable(
            "CREAMTEA_COMET_PYTHON",
            "`.venv-comet` beside creamtea's environment",
            "the Python of COMET's own environment",
            "Settings.comet_python",
        ),
        Variable(
            "CREAMTEA_SCORERS",
            "none",
            "absolute path of the file that says [which programs score](../scorers.md)",
            "Settings.scorers",
        ),
    ),
    "The web app": (
        Variable(
            "CREAMTEA_DATA",
            "none: the page takes no studies",
            "folder that studies submitted on the page may read, at the same place for every worker; nothing "
            "outside of it is looked at",
            "Settings.data",
        ),
        Variable(
            "CREAMTEA_TRY_OUT",
            "`on`",
            "`off`: no box to try a sentence in on a study's page. It is there only if torch is installed "
            "beside the web app, and the artefacts are in a folder of its machine",
            "Settings.try_out",
        ),
        Variable(
            "CREAMTEA_TRUSTED_PROXIES",
            ", ".join(f"`{proxy}`" for proxy in Serving().trusted_proxies),
            "comma-separated addresses and networks whose `X-Forwarded-For` and "
            "`X-Forwarded-Proto` are trusted",
            "Serving.trusted_proxies",
        ),
        Variable(
            "CREAMTEA_MAX_CONNECTIONS",
            f"{Serving().max_connections}",
            "pages that may be open at once, in total; 1 to 999,999",
            "Serving.max_connections",
        ),
        Variable("CREAMTEA_OIDC_ISSUER", "none", f"address, with `https://`, {OIDC}", "SignIn.issuer"),
        Variable("CREAMTEA_OIDC_CLIENT_ID", "none", f"the app's name, {OIDC}", "SignIn.client_id"),
        Variable("CREAMTEA_OIDC_CLIENT_SECRET", "none", f"the app's secret, {OIDC}", "SignIn.client_secret"),
    ),
    "Watching": (
        Variable(
            "CREAMTEA_METRICS_TOKEN",
            "none",
            "the token that Prometheus shows at `/metrics`, at least 16 characters",
        ),
        Variable("CREAMTEA_METRICS_TOKEN_FILE", "none", "a file with that token, which overrides it"),
    ),
    "Files of deploy/ and docker-compose.yml": (
        Variable("CREAMTEA_IMAGE", "`creamtea:VERSION`", "the image that Compose runs"),
        Variable(
            "CREAMTEA_URL",
            "`http://127.0.0.1:8501`",
            "where people reach the web app, for printed links and sign-in; with `https://` cookies go by "
            "HTTPS only. `creamtea link` has `--url` instead",
        ),
        Variable("CREAMTEA_RUN", "empty", "Slurm: the command before `creamtea`, `apptainer exec …` say"),
        Variable("CREAMTEA_HEAD_SECONDS", "120", "Slurm: seconds that Ray's head may take to start"),
        Variable(
            "CREAMTEA_TOKENS",
            "`~/.creamtea`",
            "Slurm: folder of the secret that the job's Ray processes share, on a disk that all nodes see",
        ),
    ),
    "Read by Ray and by object stores": (
        Variable("RAY_AUTH_MODE", "none", "`token`: Ray's processes show each other a token"),
        Variable("RAY_AUTH_TOKEN_PATH", "none", "file of the token; or the token, `RAY_AUTH_TOKEN`"),
        Variable(
            "RAY_USAGE_STATS_ENABLED",
            "`0`, as creamtea sets it",
            "`1`: Ray sends usage statistics to its makers",
        ),
        Variable("AWS_ACCESS_KEY_ID", "none", "of artefacts in `s3://…`, with `AWS_SECRET_ACCESS_KEY`"),
        Variable("AWS_ENDPOINT_URL", "Amazon's", "address of an object store, if not Amazon's"),
    ),
}


def environment_page() -> str:
    lines = [INTRODUCTION]
    for title, variables in SECTIONS.items():
        rows = [
            (f"`{name}`", default, meaning, f"`{field}`" if field else "")
            for name, default, meaning, field in variables
        ]
        lines += ["", f"## {title}", *table(("variable", "default", "meaning", "in the code"), rows)]
    return "\n".join(lines).rstrip() + "\n"
