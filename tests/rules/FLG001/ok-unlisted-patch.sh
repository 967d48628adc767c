# 0.19.2 was never released: the flags are those of 0.19.1.
# vllm: 0.19.2
vllm serve Qwen/Qwen3-8B --no-enable-chunked-prefill
