#!/usr/bin/env bash
# Instance long-docs (long-document) of the plan workload.
# Serves: analysis.
#
# 1 replica of 16 GPUs (NVIDIA H100 80GB HBM3); one replica takes all GPUs of 2 nodes.
# On each of those nodes:
#   ./serve-long-docs.sh --master-addr FIRST_NODE
#   ./serve-long-docs.sh --master-addr FIRST_NODE --node-rank 1 --headless  # second
# node; then 2, 3, ...
# Arguments given to this script come last and win over those below.
#
# Once it runs, vLLM's log should say:
#   GPU KV cache size: 732,896 tokens, Maximum concurrency for 32,768 tokens per request: 22.37x
#
# For vLLM 0.33.0; written by vllm-advisor 0.1.0. PLAN.md has the whole reasoning.
set -euo pipefail

args=(
  # clients and routers ask for the role by name; the model's own name keeps working
  # [long-docs.served-model-name; formula:role-names]
  --served-model-name meta-llama/Llama-3.1-405B-Instruct long-docs
  # divides weights over 8 GPUs of one node, and the KV heads with them
  # [long-docs.tensor-parallel-size; formula:cheapest-candidate]
  --tensor-parallel-size 8
  # one node does not hold the model: layers are split over 2 nodes
  # [long-docs.pipeline-parallel-size; formula:cheapest-candidate]
  --pipeline-parallel-size 2
  # one replica spans 2 nodes without Ray: the first node leads (--master-addr), the
  # others join it with --node-rank and --headless [long-docs.nnodes;
  # vllm:0.33.0:vllm/config/parallel.py#nnodes]
  --nnodes 2
  # class analysis needs 32,000 tokens of prompt and answer; rounded up to 1,024 and no
  # further: every token of it has to fit at start-up [long-docs.max-model-len;
  # user:workload.yaml:6]
  --max-model-len 32768
  # vLLM's default for this version; stated because older versions took 0.90
  # [long-docs.gpu-memory-utilization; vllm-default:0.33.0:gpu_memory_utilization]
  --gpu-memory-utilization 0.92
  # 8 requests at once over 1 replica, a quarter more, in eights; the profile run pays
  # activation memory for every sequence [long-docs.max-num-seqs; formula:sequences]
  --max-num-seqs 16
  # long prompts without a tight target between tokens: chunks of 8,192 read a document
  # with few passes over the weights [long-docs.max-num-batched-tokens;
  # docs:docs.vllm.ai/en/latest/configuration/optimization]
  --max-num-batched-tokens 8192
  # costs nothing when nothing repeats. On by default; stated so that it stays on
  # [long-docs.enable-prefix-caching; vllm-default:0.33.0:enable_prefix_caching]
  --enable-prefix-caching
  # a server told to stop finishes its requests for up to 45 s (what llm-d waits);
  # vLLM's default of 0 aborts them [long-docs.shutdown-timeout;
  # vllm:0.33.0:vllm/config/vllm.py#VllmConfig.shutdown_timeout]
  --shutdown-timeout 45
  # instances on one host listen on ports of their own; replicas take the ports that
  # follow [long-docs.port; formula:first-free-port]
  --port 8000
)

# the model the workload names [long-docs.model; user:workload.yaml:2]
exec vllm serve meta-llama/Llama-3.1-405B-Instruct "${args[@]}" "$@"
