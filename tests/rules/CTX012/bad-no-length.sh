# class: {name: books, prompt_tokens: 60000, output_tokens: 1000, concurrent_requests: 1}
vllm serve Qwen/Qwen2.5-14B-Instruct  # expect: CTX012
