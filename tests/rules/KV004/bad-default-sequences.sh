# gpu: h100-sxm x 1
vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16  # expect: KV004
