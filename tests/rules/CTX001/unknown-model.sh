vllm serve org/not-known --max-model-len 131072
