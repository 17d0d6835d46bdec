"""The manifest of a store: which files and folders a run makes. Nothing else in the folder is ever removed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from undertow.runs.errors import StoreError
from undertow.runs.store.folder import PRIVATE, TEMPORARY, replace_file, sync_folders
from undertow.runs.store.incidents import FILE as INCIDENTS
from undertow.runs.store.layout import EVENTS, PREDICTOR, SLICE_VARIABLES, STEP_VARIABLES, WEIGHTS, Layout

Kind = Literal["file", "folder"]
Manifest = dict[str, Kind]
"""Path inside the store → a file, or the folder of an array or of Parquet files."""

_GROUP = "zarr.json"
_IN_FOLDERS = re.compile(r"(zarr\.json|c(\.\d+)*|part-\d{6,}\.parquet)(\.tmp)?")
_PRIVATE_TEMPORARY = re.compile(r"(\.checkpoint-\d{12}\..*|\.model\.tmp\..*|model|manifest\.json)\.tmp")
_VERSION = 1


def planned(layout: Layout, alerts: str | None, incidents: bool = False) -> Manifest:
    """What a run with this layout and this format of alerts makes, with or without incidents."""
    found: Manifest = {_GROUP: "file"}
    for name in (*layout.arrays(), *layout.coordinates()):
        parents = [str(parent) for parent in PurePosixPath(name).parents if parent.name]
        found.update(dict.fromkeys([*parents, name], "folder"))
    return found | _alerts(alerts) | ({INCIDENTS: "file"} if incidents else {})


def claim(folder: Path, *, resume: bool, overwrite: bool) -> Path:
    """Make the folder a store, or accept the one that is there; returns its private folder."""
    private = folder / PRIVATE
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"store must be a folder, got the file {folder}: name another one")
    manifest = read_manifest(folder) if private.is_dir() else None
    checkpoints = any(private.glob("checkpoint-*"))
    begun = checkpoints or (manifest is not None and _GROUP in manifest and (folder / _GROUP).exists())
    if begun and not (resume or overwrite):
        raise StoreError(
            f"{folder} holds results already: continue with --resume (resume=True), start again with --overwrite "
            "(overwrite=True), or name another store with --store (store=…)"
        )
    if manifest is None and not (resume and checkpoints):  # the checkpoint says which arrays there are
        if folder.is_dir() and (others := sorted(path.name for path in folder.iterdir() if path.name != PRIVATE)):
            raise StoreError(
                f"{folder} is not empty and was not made by undertow run (it holds {others[0]}): "
                "name another store with --store"
            )
        private.mkdir(parents=True, exist_ok=True)
        write_manifest(folder, {})
    return private


def read_manifest(folder: Path) -> Manifest | None:
    """What runs have made in this folder; None where nothing shows that a run has made anything.

    A store without a manifest was written before there were any: there the metadata of the group name the arrays.
    """
    try:
        content = json.loads(_path(folder).read_bytes())
        made: Manifest = content["made"]
        if content["version"] == _VERSION and all(kind in ("file", "folder") for kind in made.values()):
            return made if all(_is_inside(name) for name in made) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return _from_metadata(folder)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Durable before anything that it lists is made, and for as long as that is there."""
    replace_file(_path(folder), json.dumps({"version": _VERSION, "made": manifest}, indent=1).encode())
    sync_folders([folder / PRIVATE])


def in_the_way(folder: Path, manifest: Manifest, wanted: Manifest) -> list[str]:
    """What a run would have to remove or write over although no run made it: paths inside the store."""
    taken = [name for name in wanted if name not in manifest and os.path.lexists(folder / name)]
    for name, kind in manifest.items():
        path = folder / name
        if not os.path.lexists(path):
            continue
        if path.is_symlink() or path.is_dir() != (kind != "file"):
            taken.append(name)
        elif path.is_dir():
            inside = {f"{name}/{entry.name}": entry for entry in sorted(path.iterdir())}
            taken += [inner for inner, entry in inside.items() if not (inner in manifest or _is_made(entry))]
    return taken


def require_free(folder: Path, manifest: Manifest, wanted: Manifest) -> None:
    """Refuse to write where there is something that no run made."""
    if found := in_the_way(folder, manifest, wanted):
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        raise StoreError(
            f"{folder / found[0]}{more} stands in the way and was not written by undertow run: "
            "move it away, or name another store with --store"
        )


def clear(folder: Path, wanted: Manifest) -> None:
    """Remove what earlier runs made, as far as the manifest lists it; nothing if anything stands in the way."""
    manifest = read_manifest(folder) or {}
    require_free(folder, manifest, wanted)
    write_manifest(folder, manifest)  # a store may have none yet, and one that is half removed could not be read
    # First the group's own document: without it no reader takes the rest for a store.
    for path in sorted(_made(folder, manifest), key=lambda path: path != folder / _GROUP):
        path.unlink(missing_ok=True)
    for path in sorted((folder / name for name in manifest), key=lambda path: -len(path.parts)):
        if path.is_dir():
            path.rmdir()
    for path in (folder / PRIVATE).glob("checkpoint-" + "[0-9]" * 12):
        path.unlink()
    write_manifest(folder, {})


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed writer left half done."""
    manifest = read_manifest(folder) or {}
    unfinished = [path for path in _made(folder, manifest) if path.name.endswith(TEMPORARY)]
    private = [path for path in (folder / PRIVATE).iterdir() if _PRIVATE_TEMPORARY.fullmatch(path.name)]
    for path in (*unfinished, *private):
        path.unlink(missing_ok=True)


def _made(folder: Path, manifest: Manifest) -> Iterator[Path]:
    """All files that the manifest lists, unfinished ones included; folders that are links are left alone."""
    for name, kind in manifest.items():
        path = folder / name
        if kind == "file":
            yield path
            if name == _GROUP:
                yield path.with_name(name + TEMPORARY)
        elif path.is_dir() and not path.is_symlink():
            yield from filter(_is_made, path.iterdir())


def _is_made(entry: Path) -> bool:
    """Whether this is a file as runs make them in their folders."""
    return entry.is_file() and not entry.is_symlink() and _IN_FOLDERS.fullmatch(entry.name) is not None


def _alerts(format: str | None) -> Manifest:
    if format == "parquet":
        return {"alerts": "folder"}
    return {f"alerts.{format}": "file"} if format in ("csv", "jsonl") else {}


def _from_metadata(folder: Path) -> Manifest | None:
    """The arrays of a store by the metadata of its group, if these are a run's; other arrays are left out."""
    try:
        root = json.loads((folder / _GROUP).read_bytes())
        attributes, arrays = root["attributes"], root["consolidated_metadata"]["metadata"]
        if not (set(STEP_VARIABLES) <= set(arrays) and {"fingerprint", "undertow"} <= set(attributes)):
            return None
        dims: Mapping[str, Any] = {name: array["dimension_names"] for name, array in arrays.items()}
        kept = {name for name in SLICE_VARIABLES if len(dims.get(name, ())) > 1}
        coordinates = {dims["rank"][0], *(dim for name in kept for dim in dims[name])}
        of_tracker = {WEIGHTS, EVENTS, PREDICTOR} if WEIGHTS in arrays else set()
        known = {*STEP_VARIABLES, *kept, *coordinates, *of_tracker}
        names = [name for name in arrays if name in known and _is_inside(name)]
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
    found: Manifest = {_GROUP: "file"}
    made: Manifest = {INCIDENTS: "file"} if "false_alarms" in attributes else {}
    return found | dict.fromkeys(names, "folder") | _alerts(attributes.get("alerts")) | made


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and path.parts[0] != PRIVATE


def _path(folder: Path) -> Path:
    return folder / PRIVATE / "manifest.json"
