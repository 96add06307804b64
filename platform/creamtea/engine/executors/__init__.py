"""Executors run steps: in this process, on a local Ray, or on a Ray cluster."""
