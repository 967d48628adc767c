# gpu: h100-sxm x 1
vllm serve Qwen/Qwen3-8B --block-size 24  # expect: FLG004
