# The negative spelling came with 0.33.0.
# vllm: 0.32.0
vllm serve Qwen/Qwen3-8B --disable-prefix-caching  # expect: FLG001
