vllm serve org/not-known --quantization gguf  # expect: QNT003
