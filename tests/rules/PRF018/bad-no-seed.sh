vllm serve some/unknown-model --tensor-parallel-size 2 \
  --kv-transfer-config '{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}'  # expect: PRF018
