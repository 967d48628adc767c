"""Memory and capacity as vLLM computes them: pure maths in integers of bytes."""
