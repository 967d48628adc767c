# gpu: h100-sxm x 1
vllm serve Qwen/Qwen3-8B --long-prefill-token-threshold 8192  # expect: PRF005
