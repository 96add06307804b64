"""Colours and type of the app, as Streamlit's theme options. Fonts are the ones Streamlit ships."""

from __future__ import annotations

from typing import Any

# The colours of systems in every plot: distinguishable for colour-blind readers on both grounds.
SERIES = ["#9a3d1c", "#2f6f8f", "#7a8b2a", "#8a5a9e", "#c98a1b", "#3b8f6f", "#b3486b", "#6d625b"]

LIGHT = {
    "primaryColor": "#9a3d1c",
    "backgroundColor": "#fffdf9",
    "secondaryBackgroundColor": "#f6f0e7",
    "textColor": "#2b2522",
    "linkColor": "#8a3517",
    "borderColor": "#e4d9cb",
}
DARK = {
    "primaryColor": "#d9774b",
    "backgroundColor": "#1d1917",
    "secondaryBackgroundColor": "#2a2421",
    "textColor": "#f0e9e2",
    "linkColor": "#eb9a72",
    "borderColor": "#453b35",
}

THEME: dict[str, Any] = {
    **{f"theme.light.{name}": value for name, value in LIGHT.items()},
    **{f"theme.dark.{name}": value for name, value in DARK.items()},
    "theme.baseRadius": "0.5rem",
    "theme.chartCategoricalColors": SERIES,
}
