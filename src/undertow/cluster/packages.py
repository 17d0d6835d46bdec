"""What an adapter needs beside Undertow, said in one sentence where it is absent."""

from __future__ import annotations

from importlib.util import find_spec


def absent(engine: str, package: str, error: ImportError, besides: str = "") -> ImportError:
    """What to raise where a package cannot be imported.

    Args:
        engine: "spark" or "ray", also the extra that installs everything.
        package: The engine's own, which is named if it is absent too.
        error: That was raised.
        besides: What else is needed.
    """
    name = (error.name or "a package").split(".")[0]
    name = "protobuf" if name == "google" else name  # the folder that its package shares with others
    name = name if find_spec(package) else package
    return ImportError(f"undertow.{engine} needs {name}: pip install 'undertow[{engine}]'{besides}", name=error.name)
