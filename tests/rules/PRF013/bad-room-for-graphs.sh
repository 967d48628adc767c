# gpu: h100-sxm x 1
vllm serve Qwen/Qwen3-8B --enforce-eager  # expect: PRF013
