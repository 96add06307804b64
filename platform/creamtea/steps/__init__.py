"""All kinds of steps: their parameters, which the plan writes and a worker reads, and their results."""
