# gpu: l40s x 1
# class: {name: chat, prompt_tokens: {p50: 900, p95: 4000, max: 120000}, output_tokens: 500, concurrent_requests: 8}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072 --max-num-seqs 8
