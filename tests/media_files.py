"""Small image, audio and video files."""

import io
import struct
import wave
import zlib

GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01"
WEBP = b"RIFF\x1a\x00\x00\x00WEBPVP8L"
MP3_TAGGED = b"ID3\x04\x00\x00\x00\x00\x00\x00"
MP3 = b"\xff\xfb\x90\x64" + b"\x00" * 400
OPUS = b"OggS\x00\x02" + b"\x00" * 22 + b"OpusHead" + b"\x01\x02"
VORBIS = b"OggS\x00\x02" + b"\x00" * 22 + b"\x01vorbis"
THEORA = b"OggS\x00\x02" + b"\x00" * 22 + b"\x80theora"
M4A = b"\x00\x00\x00\x20ftypM4A \x00\x00\x00\x00"
MP4 = b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41"
MOV = b"\x00\x00\x00\x14ftypqt  \x00\x00\x00\x00qt  "
HEIC = b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"
WEBM = b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84webmB\x87\x81\x04"
MATROSKA = WEBM.replace(b"B\x82\x84webm", b"B\x82\x88matroska")
# of a sound or a video; markup in it is no HTML
CAPTIONS = b"WEBVTT\n\n00:00.000 --> 00:15.000\nEine <b>Tasse</b> Tee, bitte\n"
SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def png(width: int = 8, height: int = 8, colour: tuple[int, int, int] = (181, 98, 63)) -> bytes:
    """A picture of one colour."""
    rows = (b"\x00" + bytes(colour) * width) * height

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def wav(seconds: float = 1.0, rate: int = 8000) -> bytes:
    """A quiet tone."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(rate)
        file.writeframes(bytes(128 + (8 if at // 10 % 2 else -8) for at in range(int(seconds * rate))))
    return out.getvalue()
