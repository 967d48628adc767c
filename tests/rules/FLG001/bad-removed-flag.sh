# gpu: h100-sxm x 1
vllm serve Qwen/Qwen3-8B --max-model-len 8192 --swap-space 16  # expect: FLG001
