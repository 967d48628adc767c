# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 2000, output_tokens: 200, concurrent_requests: 8, shared_prefix_tokens: 300}
vllm serve Qwen/Qwen3-8B --max-model-len 32768 --max-num-seqs 64
