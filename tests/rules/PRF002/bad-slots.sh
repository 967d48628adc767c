# gpu: l40s x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072 \
  --max-num-seqs 8  # expect: PRF002
