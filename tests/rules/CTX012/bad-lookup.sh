# class: {name: books, prompt_tokens: 60000, output_tokens: 1000, concurrent_requests: 1, needs: lookup}
vllm serve Qwen/Qwen3-8B --max-model-len 40960  # expect: CTX012
