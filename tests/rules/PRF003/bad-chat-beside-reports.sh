# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 900, output_tokens: 200, concurrent_requests: 8}
# class: {name: reports, prompt_tokens: 60000, output_tokens: 500, concurrent_requests: 2}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 65536  # expect: PRF003
