"""The gate: nothing of the app leaves the server without a browser session."""
