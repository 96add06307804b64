"""Colours and type of the app, as Streamlit's theme options. Fonts are the ones Streamlit ships."""

from __future__ import annotations

from typing import Any

LIGHT = {
    "primaryColor": "#9a3d1c",
    "backgroundColor": "#fffdf9",
    "secondaryBackgroundColor": "#f6f0e7",
    "textColor": "#2b2522",
    "linkColor": "#8a3517",
    "borderColor": "#e4d9cb",
}
DARK = {
    "primaryColor": "#b8552a",  # 4.8:1 under the white of its buttons, 3.2:1 on both backgrounds
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
    "theme.headingFontSizes": ["2rem", "1.3rem", "1.15rem", "1rem", "1rem", "1rem"],
    "theme.paddingTop": "1.25rem",
}
