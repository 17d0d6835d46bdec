"""All that decides what the compiler makes of a function, as a text: two that are equal may share a program."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jaxlib.version

from undertow.programs.runtime import Place

FORMAT = 2
"""Changes when files are written in another way."""
NOT_COMPILED = {
    *("adapters", "cli", "client", "export", "incidents", "lab"),
    *("plot.py", "report", "runs", "service", "sources", "view"),
}
"""Folders of the package from which no program comes: changing them leaves kept programs valid."""
_WITHOUT_EFFECT = ("cache", "log", "traceback", "default_device", "platforms", "platform_name", "dump", "guard")
"""Parts of names of JAX's settings that change no program."""


def described(name: str, static: dict[str, Any], tree: Any, leaves: list[Any], place: Place) -> str | None:
    """The text for one function and its arguments; None where something cannot be named."""
    fixed = {key: _named(value) for key, value in static.items()}
    text = json.dumps(
        {
            "format": FORMAT,
            "function": name,
            "static": fixed,
            "arguments": str(tree),
            "arrays": [leaf.aval.str_short() + "~" * leaf.aval.weak_type for leaf in leaves],
            "source": _source(),
            "settings": _settings(),
            "machine": _machine(place.device),
        },
        sort_keys=True,
    )
    # A default repr names an address in memory, which says nothing, and may come again.
    return None if " at 0x" in text or _source() is None else text


def _named(value: Any) -> str:
    qualified = getattr(value, "__qualname__", None)
    return repr(value) if qualified is None else f"{value.__module__}.{qualified}"


@cache
def _source() -> str | None:
    """Digest of the source of this package, which holds its version; None where there is none to read."""
    here = Path(__file__).parents[1]
    found, count = hashlib.sha256(), 0
    for path in sorted(here.rglob("*.py")):
        inside = path.relative_to(here)
        if inside.parts[0] not in NOT_COMPILED:
            found.update(f"{inside} {path.stat().st_size}\n".encode() + path.read_bytes())
            count += 1
    return found.hexdigest() if count else None


def _settings() -> dict[str, str]:
    """JAX's settings as they are for this thread, and what the environment asks of XLA."""
    names = [name for name in jax.config.values if not any(part in name for part in _WITHOUT_EFFECT)]
    found = {name: repr(getattr(jax.config, name, jax.config.values[name])) for name in sorted(names)}
    environment = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "NVIDIA_TF32_OVERRIDE")
    return found | {name: os.environ.get(name, "") for name in environment}


def _machine(device: Any) -> dict[str, str]:
    client = device.client
    return _host() | {
        "platform": f"{client.platform} {client.platform_version}",
        "device": f"{device.device_kind} {device.id}",
    }


@cache
def _host() -> dict[str, str]:
    """Versions, and the processor: programs for a CPU use its instructions and are cut for its cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "jax": f"{jax.__version__} {jaxlib.version.__version__}",
        "processor": f"{platform.system()} {platform.machine()} {_processor()}",
        "cores": str(cores),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:  # not Linux: programs are not shared with other machines
        return f"{platform.processor()} of {platform.node()}"
    named = ("vendor_id", "cpu family", "model", "model name", "flags", "Features", "CPU part")
    return " ".join(line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() in named)
