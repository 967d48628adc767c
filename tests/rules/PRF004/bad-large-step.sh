# 2 x 7.5e9 x 4,096 operations over 121e12 per second: half a second.
# gpu: l4 x 1
# class: {name: voice, prompt_tokens: 4000, output_tokens: 50, concurrent_requests: 6, slo: {itl_ms: 100}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 8 \
  --max-num-batched-tokens 4096  # expect: PRF004
