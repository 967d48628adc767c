# 6,900 of 7,000 tokens are the same in every request: held once.
# gpu: l4 x 1
# class: {name: chat, prompt_tokens: 6950, output_tokens: 50, concurrent_requests: 30, shared_prefix_tokens: 6900}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 32
