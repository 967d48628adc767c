vllm serve org/not-known --quantization fbgemm_fp8  # expect: QNT003
