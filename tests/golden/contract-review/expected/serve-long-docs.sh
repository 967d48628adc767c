#!/usr/bin/env bash
# Instance long-docs (long-document) of the plan contract-review.
# Serves: contract-review, clause-lookup.
#
# 1 replica of 1 GPU (NVIDIA H100 80GB HBM3). To start it:
#   CUDA_VISIBLE_DEVICES=1 ./serve-long-docs.sh
# Arguments given to this script come last and win over those below.
#
# Once it runs, vLLM's log should say:
#   GPU KV cache size: 919,296 tokens, Maximum concurrency for 122,880 tokens per request: 7.48x
#
# For vLLM 0.33.0; written by vllm-advisor 0.1.0. PLAN.md has the whole reasoning.
set -euo pipefail

args=(
  # clients and routers ask for the role by name; the model's own name keeps working
  # [long-docs.served-model-name; formula:role-names]
  --served-model-name meta-llama/Llama-3.1-8B-Instruct long-docs
  # class contract-review needs 122,000 tokens of prompt and answer; rounded up to 1,024
  # and no further: every token of it has to fit at start-up [long-docs.max-model-len;
  # user:contract-review.yaml:23]
  --max-model-len 122880
  # vLLM's default for this version; stated because older versions took 0.90
  # [long-docs.gpu-memory-utilization; vllm-default:0.33.0:gpu_memory_utilization]
  --gpu-memory-utilization 0.92
  # shrinks the KV cache of a request to 7.50 GiB per GPU; FLASH_ATTN takes it on NVIDIA
  # H100 80GB HBM3 [long-docs.kv-cache-dtype;
  # vllm:0.33.0:vllm/platforms/cuda.py#get_attn_backend_cls]
  --kv-cache-dtype fp8
  # 4 requests at once over 1 replica, a quarter more, in eights; the profile run pays
  # activation memory for every sequence [long-docs.max-num-seqs; formula:sequences]
  --max-num-seqs 8
  # long prompts without a tight target between tokens: chunks of 8,192 read a document
  # with few passes over the weights [long-docs.max-num-batched-tokens;
  # docs:docs.vllm.ai/en/latest/configuration/optimization]
  --max-num-batched-tokens 8192
  # class contract-review sends the same document or conversation 4 times in a row: its
  # KV cache is reused. On by default; stated so that it stays on
  # [long-docs.enable-prefix-caching; vllm-default:0.33.0:enable_prefix_caching]
  --enable-prefix-caching
  # a server told to stop finishes its requests for up to 45 s (what llm-d waits);
  # vLLM's default of 0 aborts them [long-docs.shutdown-timeout;
  # vllm:0.33.0:vllm/config/vllm.py#VllmConfig.shutdown_timeout]
  --shutdown-timeout 45
  # instances on one host listen on ports of their own; replicas take the ports that
  # follow [long-docs.port; formula:first-free-port]
  --port 8001
)

# the model the workload names [long-docs.model; user:contract-review.yaml:5]
exec vllm serve meta-llama/Llama-3.1-8B-Instruct "${args[@]}" "$@"
