"""The only I/O to the world: NVML, the Hugging Face Hub, local model folders."""
