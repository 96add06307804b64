"""Every kind of step: the parameters that the plan writes and a worker reads, and what the step leaves."""
