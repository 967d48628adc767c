vllm serve org/not-known --quantization ascend
