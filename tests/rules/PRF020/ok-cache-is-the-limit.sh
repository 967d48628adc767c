# 8 seats, and the cache of an L4 holds no more: only the cache is to blame.
# gpu: l4 x 1
# class: {name: chat, prompt_tokens: 6000, output_tokens: 1000, concurrent_requests: 30}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 8  # expect: PRF001
