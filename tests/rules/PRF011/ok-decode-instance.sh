vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 64 --max-num-batched-tokens 256 \
  --kv-transfer-config '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'
