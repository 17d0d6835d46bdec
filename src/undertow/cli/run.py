"""``undertow run``: a source through the model into a store."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.console import Console

from undertow.cli.config_file import ConfigFile
from undertow.cli.grouping import grouped
from undertow.cli.live import LivePage, live_page
from undertow.cli.run_bar import RunBar
from undertow.cli.signals import SIGNALS
from undertow.cli.source_options import FollowingOptions
from undertow.cli.terminal import literal
from undertow.config import PRESETS, Config, make_config
from undertow.incidents.rate import DEFAULT
from undertow.runs import RunSummary
from undertow.runs import run as run_stream
from undertow.runs.checkpoints import stopped
from undertow.runs.default_model import MOVING, default_model
from undertow.runs.options import RunOptions, pictures
from undertow.runs.runner import Model
from undertow.runs.store.alerts import Format
from undertow.runs.store.layout import DEFAULT_KEEP, SLICE_VARIABLES, Precision
from undertow.sources.base import Stream


def _presets() -> str:
    """Every preset with what it sets."""
    each = (
        f"{name} ({', '.join(f'{setting} {value}' for setting, value in changes.items()) or 'what Config has'})"
        for name, changes in PRESETS.items()
    )
    return f"Of cp: one of {'; '.join(each)}."


def _settings() -> str:
    """Every setting with its default."""
    named = {field.name: field.default for field in fields(Config)}
    own = ", ".join(
        f"{name}={value}" for name, value in named.items() if name not in ("max_rank", "window", "forgetting")
    )
    return f"Of cp: any other setting, several times if needed: {own}."


def _option(panel: str, help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel)


@dataclass(frozen=True)
class ResultOptions:
    """What is written, and where."""

    store: Annotated[Path | None, _option("Results", "Folder for the results (default: SOURCE-undertow.zarr).")] = None
    keep: Annotated[str, _option("Results", f"Of every slice: {', '.join(SLICE_VARIABLES)}; or none.")] = ",".join(
        DEFAULT_KEEP
    )
    precision: Annotated[str, _option("Results", f"Of what is kept: {' or '.join(get_args(Precision))}.")] = "single"
    alerts: Annotated[str, _option("Results", f"Table of outliers: {', '.join(get_args(Format))} or none.")] = "csv"
    alerts_per: Annotated[
        str | None, _option("Results", "A row for each entry, or for each region of entries that touch (pictures).")
    ] = None
    threshold: Annotated[float, _option("Results", "Outlier probability from which on an entry is an alert.")] = 0.5
    spreadsheet_safe: Annotated[
        bool, _option("Results", "Alerts as CSV: no text is a formula to a spreadsheet.", "--spreadsheet-safe")
    ] = False
    publish: Annotated[
        str | None,
        _option("Results", "Publish every slice's numbers and alerts: nats://host/subject[?keep=mean], kafka://…"),
    ] = None
    report: Annotated[bool, _option("Results", "Write the report too.", "--report")] = False


@dataclass(frozen=True)
class IncidentOptions:
    """How many false alarms are accepted, and who hears of incidents."""

    false_alarms: Annotated[
        str, _option("Incidents", "False incidents accepted: 1/day, 1/1000 (slices), 'fdr 10%', or none.")
    ] = DEFAULT
    slice_seconds: Annotated[float | None, _option("Incidents", "Time between slices, where they have no dates.")] = (
        None
    )
    deliver: Annotated[
        list[str] | None,
        _option("Incidents", "Tell of each, when it opens and closes: FILE.jsonl, https://, smtp://, nats://."),
    ] = None
    exit_code: Annotated[
        bool,
        _option("Incidents", "Exit with 3 if there were incidents (--false-alarms none: alerts).", "--exit-code"),
    ] = False


@dataclass(frozen=True)
class ModelOptions:
    """Settings of the model."""

    kind: Annotated[
        str | None,
        _option("Model", "tracker (the default, nothing to set) or cp (RobustCP, with the settings below).", "--model"),
    ] = None
    believed_after: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Of tracker: slices in a row after which a lasting change is believed (default: by chance; {MOVING} "
            "for pictures).",
            rich_help_panel="Model",
        ),
    ] = None
    preset: Annotated[str | None, _option("Model", _presets())] = None
    max_rank: Annotated[int | None, _option("Model", "Of cp: most components at the same time.")] = None
    window: Annotated[int | None, _option("Model", "Of cp: slices kept and re-examined.")] = None
    forgetting: Annotated[float | None, _option("Model", "Of cp: a slice t steps old counts forgetting^t.")] = None
    set_: Annotated[list[str] | None, _option("Model", _settings(), "--set")] = None

    def given(self) -> list[str]:
        """The options that are settings of `RobustCP`, as they are spelled, of those that were given."""
        return [_spelled(name) for name in _OF_CP if getattr(self, name) is not None]

    def is_cp(self) -> bool:
        """Whether the model is `RobustCP`: where that was asked for, or one of its settings was given.

        Raises:
            ValueError: There is no such model, or it has no such setting.
        """
        if self.kind not in (None, "tracker", "cp"):
            raise ValueError(f"--model must be tracker or cp, got {self.kind!r}")
        if self.kind == "tracker" and self.given():
            raise ValueError(
                f"--model tracker has nothing to set, got {', '.join(self.given())}: leave them out, or use --model cp"
            )
        return self.kind == "cp" or bool(self.given())

    def check(self) -> None:
        """Refuse what does not go together, before anything is opened.

        Raises:
            ValueError: `RobustCP` was asked for, or one of its settings was given, beside one of the tracker's.
        """
        if self.believed_after is not None and self.is_cp():
            raise ValueError("--believed-after is for the tracker: leave it out, or the settings of --model cp")
        self.settings()

    def settings(self) -> dict[str, Any]:
        """What was set, checked before anything is opened, and without jax; nothing for a tracker."""
        if not self.is_cp():
            return {}
        named = {"max_rank": self.max_rank, "window": self.window, "forgetting": self.forgetting}
        settings = {"preset": self.preset or "default", **named, **assignments(self.set_ or [])}
        make_config(**settings)
        return settings

    def model(self, stream: Stream) -> Model:
        """A new model with these settings for this stream."""
        if not self.is_cp():
            return default_model(pictures(stream) > 0, self.believed_after)
        from undertow.estimator import RobustCP  # not before it is needed: it brings jax

        return RobustCP(**self.settings())

    def notice(self) -> str | None:
        """What a user should know who gave settings but named no model."""
        if self.kind is not None or not self.given():
            return None
        return f"the model is RobustCP (--model cp), since its settings were given: {', '.join(self.given())}"


_INCIDENTS = 3  # exit code
_OF_CP = ("preset", "max_rank", "window", "forgetting", "set_")


def _spelled(name: str) -> str:
    return "--" + name.rstrip("_").replace("_", "-")


@dataclass(frozen=True)
class CheckpointOptions:
    """When checkpoints are written, and what happens to those that are there."""

    resume: Annotated[bool, _option("Checkpoints", "Continue where an earlier run stopped.", "--resume")] = False
    overwrite: Annotated[bool, _option("Checkpoints", "Remove earlier results first.", "--overwrite")] = False
    new_data: Annotated[bool, _option("Checkpoints", "With --resume: everything in the pipe is new.", "--new-data")] = (
        False
    )
    checkpoint_every: Annotated[int | None, _option("Checkpoints", "Checkpoint every n slices.")] = None
    checkpoint_seconds: Annotated[float, _option("Checkpoints", "Checkpoint after this many seconds.")] = 30.0


@grouped
def run(
    source: Annotated[str, typer.Argument(help="File, folder, or - for standard input.", show_default=False)],
    results: ResultOptions,
    incidents: IncidentOptions,
    model: ModelOptions,
    checkpoints: CheckpointOptions,
    reading: FollowingOptions,
    limit: Annotated[
        int | None, typer.Option(help="Stop when the store holds n slices, earlier ones included.")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Show a page in the browser while it runs.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help='Nothing but one JSON object about the run, with "alerts", their number.')
    ] = False,
    config: ConfigFile = None,
) -> None:
    """Clean a stream: what every entry should be, with error bars, outliers and alerts, kept in a store.

    Examples:

    \b
      undertow run lobby.mp4 --resize 0.5 --keep mean,outliers,data --report
      undertow run flows.csv --time t --modes src,dst --value bytes
      undertow run scan.nii.gz --model cp --window 10 --max-rank 8
      undertow run sensors.nc --variable temperature --alerts parquet
      sensor-feed | undertow run - --store live.zarr
      undertow run flows.csv --time t --false-alarms 1/day --deliver https://example.org/hook --exit-code
      undertow run lobby.mp4 --resume        # after a kill, a crash, Ctrl-C

    The store opens with xarray.open_zarr; undertow report, export and inspect read it too.

    Exit codes: 0 done, 2 refused or failed (one sentence says why), 3 incidents (with --exit-code), 128 + n
    stopped by signal n; what was done before is safe, and goes on with --resume.
    """
    model.check()
    options = RunOptions(
        keep=results.keep,
        precision=results.precision,  # type: ignore[arg-type] # validated there
        alerts=None if results.alerts == "none" else results.alerts,  # type: ignore[arg-type]
        alerts_per=results.alerts_per,  # type: ignore[arg-type]
        threshold=results.threshold,
        spreadsheet_safe=results.spreadsheet_safe,
        false_alarms=None if incidents.false_alarms == "none" else incidents.false_alarms,
        slice_seconds=incidents.slice_seconds,
        deliver=tuple(incidents.deliver or ()),
        publish=results.publish,
        limit=limit,
        on_bad=reading.on_bad,  # type: ignore[arg-type]
        **asdict(checkpoints),
    )
    folder = results.store or default_store(source)
    SIGNALS.sentence = lambda: stopped(folder)
    with live_page(live) as page:
        summary = _run(source, reading, model, folder, options, page, quiet=as_json)
        _show(summary, results.report, as_json)
    wrong = summary.alerts if summary.false_alarms is None else summary.incidents
    if incidents.exit_code and wrong:
        raise typer.Exit(_INCIDENTS)


def _run(
    source: str,
    reading: FollowingOptions,
    model: ModelOptions,
    folder: Path,
    options: RunOptions,
    page: LivePage,
    *,
    quiet: bool,
) -> RunSummary:
    from undertow.sources import open_stream

    with closing(open_stream(source, **reading.given())) as stream:
        made = model.model(stream)
        learned = page.watched(source, stream, options.false_alarms, options.slice_seconds)
        # Not around the stream: its reader may be stuck in standard input, and closing it would wait.
        with SIGNALS.orderly(), RunBar(Console(stderr=True), stream.length, quiet) as bar:
            if notice := model.notice():
                bar.notify(notice)
            return run_stream(
                stream, made, store=folder, progress=bar.show, notify=bar.notify, learned=learned, **vars(options)
            )


def default_store(name: str) -> Path:
    """In the present folder, named after the source."""
    stem = "stdin" if name == "-" else Path(name).resolve().name.split(".")[0] or "stream"
    return Path(f"{stem}-undertow.zarr")


def assignments(texts: list[str]) -> dict[str, Any]:
    """``["outlier_rate=0.01"]`` → ``{"outlier_rate": 0.01}``; the model says what is allowed."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip().isidentifier():
            raise ValueError(f"--set takes a name and a value such as outlier_rate=0.01, got {text!r}")
        try:
            settings[name.strip()] = json.loads(value)
        except ValueError:
            settings[name.strip()] = value.strip()
    return settings


def _show(summary: RunSummary, report: bool, as_json: bool) -> None:
    """The summary for machines or people, with the report where it was asked for."""
    files = {"store": str(summary.store)}
    if report:
        from undertow.report import write_report

        files["report"] = str(write_report(summary.store))
    if as_json:
        print(json.dumps({**asdict(summary), **files}))
        return
    lines = [f"[bold]{_counted(summary.slices, 'slice')}[/]"]
    if summary.new_slices != summary.slices:
        lines[0] += f" ({summary.new_slices} of them new)"
    lines[0] += f" in {summary.seconds:.1f} s"
    if summary.seconds > 0 and summary.new_slices:
        lines[0] += f", {summary.new_slices / summary.seconds:.3g} slices/s"
    if summary.rank is not None:
        lines.append(
            f"rank {summary.rank} and noise {summary.noise_std:.3g} at the end, {_counted(summary.alerts, 'alert')}"
        )
    for code, count in sorted(summary.flags.items(), key=lambda item: -item[1])[:3]:
        lines.append(f"[yellow]{code.lower().replace('_', ' ')}[/]: {_counted(count, 'slice')}")
    if summary.incidents:
        lasting = f", {summary.open_incidents} of them open" if summary.open_incidents else ""
        accepted = f" (false ones accepted: {summary.false_alarms})"
        lines.append(f"[bold]{_counted(summary.incidents, 'incident')}[/]{lasting}{accepted}")
    said = [f"  {text}" for text in summary.newest_incidents] if summary.incidents else summary.events
    lines += [literal(text) for text in said]
    lines += [f"{name.capitalize() + ':':7} [bold]{literal(path)}[/]" for name, path in files.items()]
    Console().print("\n".join(lines), highlight=False, soft_wrap=True)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
