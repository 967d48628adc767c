# gpu: v100-sxm2-32 x 1
vllm serve Qwen/Qwen3-8B --max-model-len 8192  # expect: GPU001
