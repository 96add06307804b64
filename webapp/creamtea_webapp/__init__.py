"""creamtea's web app: rating, reports, campaigns."""
