# gpu: l4 x 1
# class: {name: mail, prompt_tokens: 4000, output_tokens: 50, concurrent_requests: 6}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 8 --max-num-batched-tokens 4096
