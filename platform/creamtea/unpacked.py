"""Text files are plain or gzip, told apart by their first bytes and not by their names."""

from __future__ import annotations

import gzip
from typing import BinaryIO, cast

GZIP_MAGIC = b"\x1f\x8b"


def unpacked(file: BinaryIO) -> BinaryIO:
    """The bytes of an opened file, unpacked where it is gzip. Reading may then raise EOFError, zlib.error and
    gzip.BadGzipFile, an OSError."""
    is_gzip = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    file.seek(0)
    return cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_gzip else file
