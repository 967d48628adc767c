#!/usr/bin/env bash
# Instance general (general) of the plan workload.
# Serves: chat, minutes.
#
# 1 replica of 1 GPU (NVIDIA L40S). To start it:
#   CUDA_VISIBLE_DEVICES=0 ./serve-general.sh
# Arguments given to this script come last and win over those below.
#
# Once it runs, vLLM's log should say:
#   GPU KV cache size: 311,264 tokens, Maximum concurrency for 61,440 tokens per request: 5.07x
#
# For vLLM 0.33.0; written by vllm-advisor 0.1.0. PLAN.md has the whole reasoning.
set -euo pipefail

args=(
  # clients and routers ask for the role by name; the model's own name keeps working
  # [general.served-model-name; formula:role-names]
  --served-model-name meta-llama/Llama-3.2-3B-Instruct general chat long-docs
  # class minutes needs 61,200 tokens of prompt and answer; rounded up to 1,024 and no
  # further: every token of it has to fit at start-up [general.max-model-len;
  # user:workload.yaml:13]
  --max-model-len 61440
  # vLLM's default for this version; stated because older versions took 0.90
  # [general.gpu-memory-utilization; vllm-default:0.33.0:gpu_memory_utilization]
  --gpu-memory-utilization 0.92
  # 10 requests at once over 1 replica, a quarter more, in eights; the profile run pays
  # activation memory for every sequence [general.max-num-seqs; formula:sequences]
  --max-num-seqs 16
  # long prompts without a tight target between tokens: chunks of 8,192 read a document
  # with few passes over the weights [general.max-num-batched-tokens;
  # docs:docs.vllm.ai/en/latest/configuration/optimization]
  --max-num-batched-tokens 8192
  # costs nothing when nothing repeats. On by default; stated so that it stays on
  # [general.enable-prefix-caching; vllm-default:0.33.0:enable_prefix_caching]
  --enable-prefix-caching
  # short requests share this instance with longer prompts: a long prompt takes at most
  # half of a step, so a short one is read beside it
  # [general.long-prefill-token-threshold;
  # vllm:0.33.0:vllm/config/scheduler.py#long_prefill_token_threshold]
  --long-prefill-token-threshold 4096
  # adapters are served beside the base model [general.enable-lora;
  # user:workload.yaml:6]
  --enable-lora
  # adapters in one batch [general.max-loras; user:workload.yaml:6]
  --max-loras 2
  # largest adapter rank [general.max-lora-rank; user:workload.yaml:6]
  --max-lora-rank 32
  # a server told to stop finishes its requests for up to 45 s (what llm-d waits);
  # vLLM's default of 0 aborts them [general.shutdown-timeout;
  # vllm:0.33.0:vllm/config/vllm.py#VllmConfig.shutdown_timeout]
  --shutdown-timeout 45
  # instances on one host listen on ports of their own; replicas take the ports that
  # follow [general.port; formula:first-free-port]
  --port 8000
)

# the model the workload names [general.model; user:workload.yaml:2]
exec vllm serve meta-llama/Llama-3.2-3B-Instruct "${args[@]}" "$@"
