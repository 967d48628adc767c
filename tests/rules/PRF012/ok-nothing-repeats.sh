# class: {name: tags, prompt_tokens: 2000, output_tokens: 100, concurrent_requests: 4}
vllm serve Qwen/Qwen3-8B --no-enable-prefix-caching
