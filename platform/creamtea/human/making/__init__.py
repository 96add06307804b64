"""Making a campaign: its settings, what people rate, preview and launch."""
