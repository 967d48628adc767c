vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16
