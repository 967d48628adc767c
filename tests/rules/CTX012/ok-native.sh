# class: {name: books, prompt_tokens: 130000, output_tokens: 1072, concurrent_requests: 1}
vllm serve meta-llama/Llama-3.1-8B-Instruct
