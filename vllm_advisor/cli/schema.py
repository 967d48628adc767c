"""vllm-advisor schema."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import Annotated

import typer


class SchemaName(StrEnum):
    """Files that have a schema."""

    WORKLOAD = "workload"
    ENVIRONMENT = "environment"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(schema)


def schema(
    name: Annotated[SchemaName, typer.Argument(help="Which file.")] = SchemaName.WORKLOAD,
) -> None:
    """Print the JSON Schema of a file users write, for editors.

    Examples:

      vllm-advisor schema workload > workload.schema.json

      vllm-advisor schema environment > environment.schema.json
    """
    from vllm_advisor.knowledge.environment_file import EnvironmentKeys
    from vllm_advisor.knowledge.workloads import workload_json_schema

    made = workload_json_schema()
    if name is SchemaName.ENVIRONMENT:
        made = {"$schema": made["$schema"], **EnvironmentKeys.model_json_schema()}
    sys.stdout.write(json.dumps(made, indent=2) + "\n")
