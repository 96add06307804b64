"""The documentation, where this installation has it as a site (`creamtea docs` shows the same files).

Its text is public: whoever may come in may read it, raters too.
"""

from __future__ import annotations

import mimetypes
from os import PathLike, stat_result
from pathlib import Path

from starlette.responses import FileResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from creamtea.cli.docs import built_site
from creamtea_webapp.gate.middleware import content_security_policy
from creamtea_webapp.gate.paths import DOCUMENTATION

mimetypes.add_type("text/plain", ".yaml")  # measured results are read in the browser, not saved as files


def routes() -> list[Mount]:
    """None where the site is not built."""
    folder = built_site()
    return [] if folder is None else [Mount(f"/{DOCUMENTATION}", Site(directory=folder))]


class Site(StaticFiles):
    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """A page's own inline scripts may run, and no others."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        if isinstance(response, FileResponse) and Path(full_path).suffix == ".html":
            page = Path(full_path).read_text(encoding="utf-8")
            response.headers["Content-Security-Policy"] = content_security_policy(page)
        return response
