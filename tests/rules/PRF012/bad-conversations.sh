# class: {name: chat, prompt_tokens: 2000, output_tokens: 100, concurrent_requests: 4, requests_per_document: 5}
vllm serve Qwen/Qwen3-8B --no-enable-prefix-caching  # expect: PRF012
