"""Durations in words."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """As "12 s", "4 min", "3 h 05 min"."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
