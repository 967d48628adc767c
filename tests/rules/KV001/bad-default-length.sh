# gpu: rtx-4090 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct  # expect: KV001
