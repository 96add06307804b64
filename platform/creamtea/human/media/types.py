"""What a file beside a source may be, told by its first bytes.

SVG is not among them, because it can carry scripts; nor is what not every browser plays. A file's ending must
fit, too: it is what people go by.
"""

from __future__ import annotations

HEAD = 4096  # bytes that tell

# MIME type → the endings that fit, the usual one first
ENDINGS = {
    "image/png": (".png",),
    "image/jpeg": (".jpg", ".jpeg"),
    "image/webp": (".webp",),
    "image/gif": (".gif",),
    "audio/mpeg": (".mp3",),
    "audio/ogg": (".ogg", ".oga", ".opus"),
    "audio/wav": (".wav",),
    "audio/mp4": (".m4a",),
    "video/mp4": (".mp4",),
    "video/webm": (".webm",),
}
# of sound and video; never shown by itself
CAPTIONS, CAPTIONS_ENDING = "text/vtt", ".vtt"
MAX_BYTES = {"image": 20_000_000, "audio": 100_000_000, "video": 200_000_000}  # of a file
ALLOWED = ", ".join(endings[0].removeprefix(".") for endings in ENDINGS.values())

_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
# what the first page of an Ogg stream with sound begins with (RFC 3533, RFC 7845)
_OGG_AUDIO = (b"\x01vorbis", b"OpusHead", b"\x7fFLAC", b"Speex   ")
# brands of an ISO base media file (ISO/IEC 14496-12); those of HEIC, AVIF and QuickTime are not among them
_M4A = (b"M4A ", b"M4B ")
_MP4 = (b"iso", b"mp41", b"mp42", b"avc1", b"M4V ", b"dash", b"mmp4", b"MSNV", b"f4v ")


def media_type(head: bytes) -> str | None:
    """The MIME type of a file with these first bytes (`HEAD` of them); None for what is not allowed."""
    for magic, image in _IMAGES.items():
        if head.startswith(magic):
            return image
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    if head.startswith(b"OggS"):
        return "audio/ogg" if any(head[28:].startswith(codec) for codec in _OGG_AUDIO) else None
    if head[4:8] == b"ftyp":
        if head[8:12] in _M4A:
            return "audio/mp4"
        return "video/mp4" if head[8:12].startswith(_MP4) else None
    if head.startswith(b"\x1a\x45\xdf\xa3"):  # EBML; a Matroska file names another type of document
        return "video/webm" if b"\x42\x82\x84webm" in head[:256] else None
    return "audio/mpeg" if _is_mp3(head) else None


def _is_mp3(head: bytes) -> bool:
    """An ID3 tag, or a frame of MPEG audio layer III with a rate that there is (ISO/IEC 11172-3)."""
    if head.startswith(b"ID3"):
        return True
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer, bitrate, rate = head[1] >> 3 & 3, head[1] >> 1 & 3, head[2] >> 4, head[2] >> 2 & 3
    return version != 1 and layer == 1 and bitrate not in (0, 15) and rate != 3


def kind_of(media: str) -> str:
    """ "image", "audio" or "video", of a MIME type."""
    return media.partition("/")[0]


def file_name(digest: str, media: str) -> str:
    """How an export calls a file."""
    return f"{digest}{CAPTIONS_ENDING if media == CAPTIONS else ENDINGS[media][0]}"
