"""From a plan to artifacts; templates never compute.

A module with ``TARGET`` and ``render`` is a target, found by ``targets``: ``serve``, ``compose``,
``kubernetes``, ``leaderworkerset`` and ``llm_d`` (folders of ``kubernetes``), ``kserve``,
``production_stack``. ``plan_file`` and ``markdown`` write plan.yaml and PLAN.md beside each.
What targets share is plain data for templates: words of a command (``argv``), the pod (``pod``) and
what surrounds it (``scaling``, ``rollout``, ``groups``, ``kustomization``, ``names``).
"""
