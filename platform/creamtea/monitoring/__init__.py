"""Figures for Prometheus, from the database alone; controller and web app serve the same."""
