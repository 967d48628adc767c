# 128 KiB a token: 30 x 7,000 tokens are 25.6 GiB, an L4 has about 4 beside 15 GiB of weights.
# gpu: l4 x 1
# class: {name: chat, prompt_tokens: 6000, output_tokens: 1000, concurrent_requests: 30}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 32  # expect: PRF001
