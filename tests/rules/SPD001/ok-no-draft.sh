# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 500, output_tokens: 300, concurrent_requests: 200}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 256
