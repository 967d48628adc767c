vllm serve org/not-known --quantization fbgemm_fp8 --allow-deprecated-quantization
vllm serve org/not-known:latest --quantization awq_marlin
