"""The API: parse, ask, answer."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from undertow.service import answers, bodies, frames, schemas, times
from undertow.service.answers import as_json
from undertow.service.errors import Conflict, Invalid, NotFound
from undertow.service.spec import LABEL_LENGTH, NAME, checked_name, checked_spec
from undertow.service.streams import Stream, Streams

Name = Annotated[str, Path(pattern=NAME, description="Of the stream.")]
Sequence_ = Annotated[int, Path(ge=0, lt=2**53, description="Number of the slice, from 0 on.")]
First = Annotated[int, Query(ge=0, lt=2**53, description="The first slice.")]
Last = Annotated[int, Query(ge=0, lt=2**53, description="The slice after the last one.")]
Most = Annotated[int, Query(ge=1, le=10_000, description="At most n, the newest.")]
Fields = Annotated[
    str, Query(pattern="^[a-z_,]*$", max_length=80, description=f"Arrays to send: {', '.join(answers.FIELDS)}.")
]
_END = 2**53 - 1
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": LABEL_LENGTH}}
_SLICE = {
    "type": "object",
    "required": ["values"],
    "additionalProperties": False,
    "properties": {
        "values": {"type": "array", "description": "Nested lists of numbers, null where nothing was observed."},
        "time": {"description": "ISO 8601, or seconds since 1970.", "anyOf": [{"type": "string"}, {"type": "number"}]},
        "sequence": {"type": "integer", "minimum": 0, "description": "Makes retries safe."},
        "labels": {
            "description": "For each mode the names of the rows that values has, in its order, or null for all rows.",
            "anyOf": [{"type": "array", "items": {"anyOf": [_NAMES, {"type": "null"}]}}, {"type": "null"}],
        },
    },
}
_BODY = {
    "required": True,
    "content": {
        bodies.JSON: {
            "schema": {
                "anyOf": [
                    _SLICE,
                    {
                        "type": "object",
                        "required": ["slices"],
                        "properties": {"slices": {"type": "array", "items": _SLICE, "minItems": 1}},
                    },
                ]
            }
        },
        bodies.NPY: {"schema": {"type": "string", "format": "binary", "description": "One slice, or a stack."}},
        bodies.ARROW: {
            "schema": {"type": "string", "format": "binary", "description": "A row for each slice, with JSON's names."}
        },
    },
}
_BINARY = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}


def _errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": schemas.Error} for code in (400, 401, 403, 408, 413, 421, 422, 503, *codes)}


router = APIRouter(prefix="/api", responses=_errors())


def _streams(request: Request) -> Streams:
    found: Streams = request.app.state.streams
    return found


def _stream(request: Request, name: str) -> Stream:
    return _streams(request).get(checked_name(name))


def _read(request: Request, name: str) -> Stream:
    """A stream whose results are in the store: it waits, so not for the loop of events."""
    stream = _stream(request, name)
    _streams(request).read_all()
    return stream


@router.get("/streams", response_model=schemas.StreamList)
def list_streams(request: Request) -> Response:
    """All streams, by name."""
    streams = _streams(request)
    streams.read_all()
    found = [answers.info(streams, one) for one in streams.all()]
    return as_json({"streams": found, "read_only": request.app.state.read_only})


@router.put(
    "/streams/{name}",
    response_model=schemas.StreamInfo,
    responses={201: {"model": schemas.StreamInfo}, **_errors(409)},
)
async def create_stream(request: Request, name: Name, given: schemas.NewStream) -> Response:
    """Create a stream. To ask twice for the same is no error."""
    streams = _streams(request)
    spec = await run_in_threadpool(checked_spec, given.model_dump(), streams.limits)
    stream, new = await streams.create(checked_name(name), spec)
    return as_json(await run_in_threadpool(answers.info, streams, stream), 201 if new else 200)


@router.get("/streams/{name}", response_model=schemas.StreamInfo, responses=_errors(404))
def show_stream(request: Request, name: Name) -> Response:
    """One stream."""
    return as_json(answers.info(_streams(request), _read(request, name)))


@router.delete("/streams/{name}", status_code=204, responses=_errors(404))
async def delete_stream(request: Request, name: Name) -> Response:
    """Delete a stream with everything that belongs to it."""
    await _streams(request).delete(checked_name(name))
    return Response(status_code=204)


@router.post(
    "/streams/{name}/slices",
    response_model=schemas.PushAnswer,
    responses={202: {"model": schemas.PushAnswer}, **_errors(404, 409, 415, 429)},
    openapi_extra={"requestBody": _BODY},
)
async def push_slices(
    request: Request,
    name: Name,
    asynchronous: Annotated[bool, Query(alias="async", description="Answer once they are safe.")] = False,
    alerts_only: Annotated[
        bool, Query(description="Answer with those slices only that hold alerts, no arrays.")
    ] = False,
    fields: Fields = "mean,std,outlier_probability",
    sequence: Annotated[int | None, Query(ge=0, lt=2**53, description="Of the first slice.")] = None,
    time: Annotated[str | None, Query(max_length=60, description="Of the first slice; others follow by step.")] = None,
) -> Response:
    """Send one slice or many.

    They are accepted (200 or 202) once they will survive a crash and a power cut. With sequence numbers a request may
    be sent again: what was accepted before is not learned twice.
    """
    streams, stream = _streams(request), _stream(request, name)
    if name in streams.fed:
        raise Conflict(f"stream {name} is fed by a broker: send slices there")
    wanted = _fields("" if alerts_only else fields)
    body = await request.body()
    kind = request.headers.get("content-type", "")
    arguments = (kind, body, stream.spec, streams.limits.slices, sequence, time)
    given = bodies.decoded(*arguments) if len(body) < 2**14 else await run_in_threadpool(bodies.decoded, *arguments)
    with streams.metrics.push.time():
        accepted = await streams.push(stream, given, wait=not asynchronous)
    results = [answers.accepted(one, stream.spec, wanted) for one in accepted]
    if alerts_only:
        results = [one for one in results if one.get("alerts") or one.get("incidents") or one.get("error")]
    answer = {"stream": stream.name, "next": stream.next, "results": results}
    return as_json(answer, 202 if asynchronous else 200)


@router.get("/streams/{name}/slices/{sequence}", response_model=schemas.SliceResult, responses=_errors(404))
def show_slice(request: Request, name: Name, sequence: Sequence_, fields: Fields = "mean") -> Response:
    """What was found in a slice of the past; arrays in single precision."""
    stream, wanted = _read(request, name), _fields(fields)
    return as_json(answers.kept_json(_kept(request, stream, sequence), stream.spec, wanted))


@router.get("/streams/{name}/frames/{sequence}", response_class=Response, responses={200: _BINARY, **_errors(404)})
def show_frame(request: Request, name: Name, sequence: Sequence_ | Literal["newest"]) -> Response:
    """A slice as the page draws it: length of the header (uint32), JSON header, four float32 arrays."""
    stream = _read(request, name)
    kept = _kept(request, stream, None if sequence == "newest" else int(sequence))
    header = {"stream": name, "sequence": kept.sequence, "time": kept.time, "numbers": json.loads(kept.numbers)}
    body = frames.widened(kept.body, stream.spec.shape_at(kept.sequence), stream.spec.shape)
    return Response(frames.framed(header, body), media_type="application/octet-stream")


@router.get("/streams/{name}/series", response_model=schemas.Series, responses=_errors(404))
def show_series(request: Request, name: Name, first: First = 0, last: Last = _END, most: Most = 2000) -> Response:
    """Curves of rank, noise, outlier rate, calibration and weights."""
    stream = _read(request, name)
    return as_json(answers.series(name, _streams(request).store.numbers(stream.key, first, last, most)))


@router.get("/streams/{name}/cell", response_model=schemas.Cell, responses=_errors(404))
def show_cell(
    request: Request,
    name: Name,
    position: Annotated[str, Query(pattern=r"^\d{1,9}(,\d{1,9}){0,11}$", description="Of the entry: 3,4.")],
    first: First = 0,
    last: Last = _END,
    most: Most = 500,
) -> Response:
    """The past of one entry, with its error bars."""
    stream = _read(request, name)
    place, shape = tuple(int(index) for index in position.split(",")), stream.spec.shape
    if len(place) != len(shape) or any(index >= size for index, size in zip(place, shape, strict=True)):
        raise NotFound(f"position must lie within {list(shape)}, got {list(place)}")
    rows: list[Any] = []
    end = last
    for begin, former in reversed(stream.spec.grown or ((0, shape),)):
        if any(index >= size for index, size in zip(place, former, strict=True)) or len(rows) >= most:
            break
        offsets = frames.offsets(place, former)
        rows[:0] = _streams(request).store.pieces(stream.key, max(first, begin), end, offsets, most - len(rows))
        end = min(end, begin)
    numbers = np.frombuffer(b"".join(piece for row in rows for piece in row[2]), "<f4").reshape(-1, len(frames.PLANES))
    curves = {plane: np.ascontiguousarray(numbers[:, number]) for number, plane in enumerate(frames.PLANES)}
    labels = stream.spec.labels_of(place)
    head = {"stream": name, "position": list(place), "labels": labels, "sequence": [row[0] for row in rows]}
    return as_json({**head, "time": [row[1] for row in rows], **curves})


@router.get("/streams/{name}/incidents", response_model=schemas.IncidentList, responses=_errors(404))
def list_incidents(
    request: Request,
    name: Name,
    only_open: Annotated[bool, Query(alias="open", description="Only those that last.")] = False,
    most: Most = 200,
) -> Response:
    """Incidents, newest first."""
    stream = _read(request, name)
    found = [json.loads(text) for text in _streams(request).store.incidents(stream.key, most)]
    return as_json({"stream": name, "incidents": [one for one in found if one["open"] or not only_open]})


@router.post(
    "/streams/{name}/incidents/{id}/feedback", response_model=schemas.IncidentList, responses=_errors(404, 429)
)
async def give_feedback(
    request: Request, name: Name, id: Annotated[int, Path(ge=1, lt=2**53)], said: schemas.Said
) -> Response:
    """Say that an incident was a false alarm (or, after all, was none): the bar for that pattern is raised."""
    streams, stream = _streams(request), _stream(request, name)
    changes = await streams.feedback(stream, id, said.false_alarm)
    return as_json({"stream": name, "incidents": [{"what": one.what, **one.incident.to_json()} for one in changes]})


@router.get("/streams/{name}/export", response_class=Response, responses={200: _BINARY, **_errors(404)})
async def export_stream(request: Request, name: Name) -> Response:
    """The model after all slices that were accepted; `undertow.from_bytes` goes on from it."""
    streams, stream = _streams(request), _stream(request, name)
    if not stream.next:
        raise NotFound(f"stream {name} has no slices yet: send one first")
    content = await streams.ask(stream, lambda hosted: hosted.model.to_bytes())
    headers = {"content-disposition": f'attachment; filename="{name}.undertow"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


@router.get("/grafana/series", response_model=list[dict[str, Any]], responses=_errors(404))
def grafana_series(
    request: Request,
    stream: Annotated[str | None, Query(pattern=NAME, description="All streams if left out.")] = None,
    most: Annotated[int, Query(ge=1, le=2000, description="Slices of each stream, the newest.")] = 200,
) -> Response:
    """Curves as rows, for Grafana's Infinity data source: stream, time in milliseconds, one column for each number."""
    streams, rows = _streams(request), []
    streams.read_all()
    for one in streams.all() if stream is None else [_stream(request, stream)]:
        for sequence, time, text in streams.store.numbers(one.key, 0, _END, most):
            numbers = {key: value for key, value in json.loads(text).items() if key not in ("weights", "status")}
            rows.append(
                {
                    "stream": one.name,
                    "time": times.milliseconds(time) if time else None,
                    "sequence": sequence,
                    **numbers,
                }
            )
    return as_json(rows)


def _kept(request: Request, stream: Stream, sequence: int | None) -> Any:
    kept = _streams(request).store.kept(stream.key, sequence)
    if kept is None:
        raise NotFound(f"slice {'newest' if sequence is None else sequence} of {stream.name} is not kept")
    return kept


def _fields(text: str) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(name for name in text.split(",") if name))
    if unknown := [name for name in wanted if name not in answers.FIELDS]:
        raise Invalid(f"fields are among {', '.join(answers.FIELDS)}, got {unknown[0]!r}")
    return wanted
