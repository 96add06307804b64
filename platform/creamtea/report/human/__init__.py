"""People's ratings of a study's systems: from single ratings to tables with intervals and verdicts."""
