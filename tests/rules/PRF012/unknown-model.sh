vllm serve some/unknown-model --no-enable-prefix-caching
