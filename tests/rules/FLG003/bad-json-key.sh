vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"connector": "NixlConnector"}'  # expect: FLG003
