# gpu: a100-sxm4-40 x 1
# class: {name: tags, prompt_tokens: 900, output_tokens: 20, concurrent_requests: 4}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 4096
