"""What vLLM counts about itself, in Prometheus' terms."""
