"""The contract of steps: what the plan writes, the engine carries, a worker reads and the store keeps."""
