"""Keeping house: what takes space, what no study needs, removing studies."""
