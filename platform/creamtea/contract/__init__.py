"""The contract of steps between plan, engine, workers and store."""
