# 5 requests per second that stay 2 + 0.04 x 500 = 22 s: 110 at once.
# gpu: l4 x 1
# class: {name: chat, prompt_tokens: 3000, output_tokens: 500, requests_per_second: 5}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 128  # expect: PRF001
