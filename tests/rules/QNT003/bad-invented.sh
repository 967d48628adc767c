vllm serve org/not-known --quantization int4  # expect: QNT003
