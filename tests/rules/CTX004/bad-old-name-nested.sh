# The model's own type stays; the factor is then multiplied in, 262,144 x 2.
vllm serve Qwen/Qwen3-VL-8B-Instruct --max-model-len 262144 --hf-overrides '{"text_config": {"rope_parameters": {"type": "yarn", "factor": 2.0}}}'  # expect: CTX004
