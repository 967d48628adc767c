"""Docker Compose files into the servers they start."""
