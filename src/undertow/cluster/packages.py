"""What an adapter needs beside Undertow, said in one sentence where it is absent."""

from __future__ import annotations


def absent(what: str, extra: str, error: ImportError, besides: str = "") -> ImportError:
    """What to raise where a package cannot be imported.

    Args:
        what: Needs it.
        extra: Of Undertow, that installs it.
        error: That it raised.
        besides: What else is needed.
    """
    name = (error.name or "a package").split(".")[0]
    name = "protobuf" if name == "google" else name  # the folder that its package shares with others
    return ImportError(f"{what} needs {name}: pip install 'undertow[{extra}]'{besides}", name=error.name)
