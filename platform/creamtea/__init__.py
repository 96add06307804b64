"""creamtea: the control plane. See docs/architecture.md for the map."""

__version__ = "0.2.0"
