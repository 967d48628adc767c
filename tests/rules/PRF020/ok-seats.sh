# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 1000, output_tokens: 200, concurrent_requests: 60}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 64
