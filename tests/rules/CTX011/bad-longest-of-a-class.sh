# class: {name: chat, prompt_tokens: {p50: 500, p95: 2000, max: 6000}, output_tokens: {p50: 100, p95: 300, max: 3000}, concurrent_requests: 1}
# class: {name: short, prompt_tokens: 100, output_tokens: 100, concurrent_requests: 1}
vllm serve Qwen/Qwen3-8B --max-model-len 8192  # expect: CTX011
