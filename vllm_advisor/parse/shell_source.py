"""A shell script as a source: its servers, and the containers that ``docker run`` makes."""

from __future__ import annotations

from vllm_advisor.parse.deployed import Deployed, ServedInstance
from vllm_advisor.parse.docker_run import docker_container, docker_gpus, docker_options
from vllm_advisor.parse.images import EngineOf
from vllm_advisor.parse.installed import installed
from vllm_advisor.parse.placed import Placed
from vllm_advisor.parse.serve_command import read_shell
from vllm_advisor.parse.shell import read_script
from vllm_advisor.parse.shell_servers import ShellServer

KIND = "shell"


def read_shell_source(text: str, file: str, engine_of: EngineOf) -> Deployed:
    """The servers that a script starts; none in a script that starts something else."""
    script = read_script(text, file)
    servers = read_shell(script, engine_of)
    return Deployed(
        kind=KIND,
        file=file,
        instances=tuple(shell_instance(server, KIND) for server in servers),
        packages=installed(script.commands),
    )


def shell_instance(server: ShellServer, kind: str) -> ServedInstance:
    """One server that a command line starts, in the container of ``docker run`` if it has one."""
    command, image = server.command, server.image
    options = docker_options(server.before)
    where = server.before[0].location if server.before else command.location
    container = None if options is None else docker_container(options, image, where)
    gpus, devices = (None, ()) if options is None else docker_gpus(options)
    version = image.version if image else ""
    return ServedInstance(
        command=command,
        kind=kind,
        name=container.name if container and container.name else f"line {command.location.line}",
        location=command.location,
        container=container,
        vllm_version=Placed(version, image.location) if image and version else None,
        gpus=gpus,
        devices=devices or _visible(server),
        background=server.background,
    )


def _visible(server: ShellServer) -> tuple[Placed[str], ...]:
    """GPUs that ``CUDA_VISIBLE_DEVICES`` leaves visible."""
    text = server.command.env.get("CUDA_VISIBLE_DEVICES", "")
    if not text or "$" in text:
        return ()
    place = server.command.env_locations["CUDA_VISIBLE_DEVICES"]
    return tuple(Placed(part.strip(), place) for part in text.split(","))
