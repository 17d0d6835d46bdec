"""``undertow bench sharded``, ``capacity`` and ``engines``: beyond one device, and beyond one machine."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from undertow.cli.bench_tables import show_tables, sizes


def sharded(
    shape: Annotated[
        list[str] | None, typer.Option(help="Of a slice, 4096x64; give it again for another [default: four lengths].")
    ] = None,
    cpu_devices: Annotated[
        int | None, typer.Option(min=1, help="Devices that the CPU stands for [default: all devices there are].")
    ] = None,
    slices: Annotated[int, typer.Option(min=0, help="Steps that are timed after the first; 0: compile only.")] = 3,
    rank: Annotated[int, typer.Option(min=1, help="Most components.")] = 16,
    window: Annotated[int, typer.Option(min=1, help="Slices in the window.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Of the slices.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Nothing but one JSON list.")] = False,
) -> None:
    """One slice split over devices: bytes sent per sweep, memory of each device, time of a step.

    Examples:

    \b
      undertow bench sharded --cpu-devices 8                   # four lengths of the split mode: the bytes stay
      undertow bench sharded --shape 20000x20000               # on one large GPU
    """
    import jax

    if cpu_devices is not None:
        config: Any = jax.config
        config.update("jax_num_cpu_devices", cpu_devices)
        config.update("jax_platforms", "cpu")
    from undertow.lab.studies.sharded import sharded as study

    shapes = [sizes(one) for one in shape or ("1024x64", "2048x64", "4096x64", "8192x64")]
    settings = {"max_rank": rank, "window": window}
    if as_json:
        from undertow.lab.reporter import Reporter

        numbers = study(shapes, slices, seed, settings, Reporter())[1]
        typer.echo(json.dumps(numbers, indent=1, allow_nan=False))
        return
    show_tables(lambda bars: [study(shapes, slices, seed, settings, bars)[0]])


def capacity(
    streams: Annotated[int, typer.Option(min=1, help="In all.")] = 1_000_000,
    shards: Annotated[list[int] | None, typer.Option(min=1, help="Their number; give it again for another.")] = None,
    period: Annotated[float, typer.Option(min=1e-3, help="Seconds between slices of a stream.")] = 60.0,
    trigger: Annotated[float, typer.Option(min=0, help="Seconds between batches of a shard, at least.")] = 1.0,
    model: Annotated[str, typer.Option(help="cp or tracker.")] = "cp",
    shape: Annotated[str, typer.Option(help="Of a slice, 8x8.")] = "8x8",
    rank: Annotated[int, typer.Option(min=1, help="Of cp: most components.")] = 4,
    window: Annotated[int, typer.Option(min=1, help="Of cp: slices in the window.")] = 8,
    members: Annotated[list[int] | None, typer.Option(min=1, help="Sizes of fleets that are measured.")] = None,
    slices: Annotated[int, typer.Option(min=1, help="That are timed, after as many that are not.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulation.")] = 0,
) -> None:
    """State and processor time of a stream, measured here; then a million of them on a hundred shards, simulated.

    Examples:

    \b
      undertow bench capacity                                  # 8x8 slices once a minute
      undertow bench capacity --model tracker --period 300
      undertow bench capacity --shards 50 --shards 100 --shards 200 --shape 16x16
    """
    from undertow.lab.studies.capacity import measured, tables

    settings = {"max_rank": rank, "window": window} if model == "cp" else {}
    sized = sorted(members or (16, 128, 1024))

    def study(bars: Any) -> Any:
        rows, costs = measured(model, sizes(shape), sized, slices, settings, bars)
        return tables(rows, costs, streams, shards or (50, 100, 200), period, trigger, seed)[0]

    show_tables(study)


def engines(
    engine: Annotated[list[str] | None, typer.Option(help="spark or ray; give it again for both.")] = None,
    streams: Annotated[int, typer.Option(min=1, help="How many.")] = 500,
    slices: Annotated[int, typer.Option(min=1, help="Of each that are counted.")] = 10,
    shape: Annotated[str, typer.Option(help="Of a slice, 4x3.")] = "4x3",
    model: Annotated[str, typer.Option(help="cp or tracker.")] = "cp",
    shards: Annotated[int, typer.Option(min=1, help="As many for all.")] = 4,
    processes: Annotated[int, typer.Option(min=1, help="Tasks or actors at a time.")] = 2,
    packed: Annotated[bool, typer.Option("--packed", help="One row a slice, not a row an entry.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the streams.")] = 102,
) -> None:
    """The price of an engine: the same streams through one process, Spark and Ray, on this machine.

    Examples:

    \b
      undertow bench engines --engine spark
      undertow bench engines --engine spark --engine ray --packed --shape 12x12
    """
    try:
        from undertow.lab.studies.engines import engines as study
    except ModuleNotFoundError as error:
        raise ImportError(f"engines need {error.name}: pip install 'undertow[spark,ray]'") from None

    unknown = [name for name in engine or () if name not in ("spark", "ray")]
    if unknown or model not in ("cp", "tracker"):
        raise ValueError(f"engine must be spark or ray and model cp or tracker, got {unknown or model}")
    given = (engine or (), streams, slices, sizes(shape), model, shards, processes, packed, seed)
    show_tables(lambda bars: [study(*given, bars)])
