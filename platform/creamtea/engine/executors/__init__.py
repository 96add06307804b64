"""Where steps run: in this process, on a Ray of this machine, on a Ray cluster."""
