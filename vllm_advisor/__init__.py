"""vllm-advisor: plans, explains and checks vLLM deployments."""

__version__ = "0.1.0"
