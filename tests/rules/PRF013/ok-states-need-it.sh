# With CUDA graphs vLLM wants a state block for each of the default 1,024 sequences.
# gpu: h100-sxm x 1
vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 --enforce-eager
