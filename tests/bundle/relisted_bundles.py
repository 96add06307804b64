"""A manifest that does not tell of what a test has changed in a bundle."""

import json

from creamtea.bundle.archive import MANIFEST, json_bytes, sha256


def relisted(files: dict[str, bytes]) -> dict[str, bytes]:
    """With a manifest of the files as they are now."""
    manifest = json.loads(files[MANIFEST])
    manifest["files"] = {
        name: {"sha256": sha256(content), "bytes": len(content)}
        for name, content in files.items()
        if name != MANIFEST
    }
    return {**files, MANIFEST: json_bytes(manifest)}
