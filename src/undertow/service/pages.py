"""The page: a fixed set of small files, read once; no address reaches the file system."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, Response

from undertow.service.errors import NotFound

_TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
_TYPES |= {"svg": "image/svg+xml"}

router = APIRouter(include_in_schema=False)
_FILES = {
    file.name: (file.read_bytes(), _TYPES[file.name.rpartition(".")[2]])
    for folder in (files("undertow.service") / "page", files("undertow.view") / "parts")
    for file in folder.iterdir()
    if file.name.rpartition(".")[2] in _TYPES
}


@router.get("/")
def index() -> Response:
    """The page itself."""
    return _file("index.html")


@router.get("/page/{name}")
def page_file(name: str) -> Response:
    """What it consists of."""
    return _file(name)


def _file(name: str) -> Response:
    if name not in _FILES:
        raise NotFound("there is no such file")
    content, kind = _FILES[name]
    return Response(content, media_type=kind, headers={"cache-control": "no-cache"})
