"""Every figure of the paper's section "Numerical Results". A new figure is one entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from undertow.lab.cases.case import Condition
from undertow.lab.figures.figure import Panel, PaperFigure
from undertow.lab.names import pick

_UNDERTOW = ("undertow", "undertow_paper")
_STREAMING = (*_UNDERTOW, "online_sgd", "olstec")
_COMPLETE = (*_UNDERTOW, "online_cp", "online_sgd", "olstec")
_FULL, _SAMPLED = Condition(1.0, 0.02), Condition(0.15, 0.02)
_SEVERE = Condition(0.1, 0.1)
_RANK_SETTINGS = {"max_rank": 20, "window": 20, "forgetting": 0.8}
_RANK_QUICK = {"slices": 20, "burn_in": 15, "crop": 40}
_MRI_SETTINGS = {"max_rank": 15, "window": 20, "forgetting": 0.98}
_MULTISLICE_SETTINGS = {"max_rank": 30, "window": 5, "forgetting": 0.98}
_ABILENE = {"slices": 300, "burn_in": 10}
_ABILENE_QUICK = {"slices": 25, "burn_in": 10}
_CROPPED = "Quick run: small, cropped pictures, and fewer of them; the second frame shown is the last that was run."
_SHORT = "Quick run: 25 slices instead of 100, one seed."
_DRAWS = (
    "Two streams: the authors' generator, as their scripts have it, and drifting normal factors with a random temporal "
    "row, as the paper's text can be read. 2 % outliers as in text and scripts (the captions say 1 %). "
)
_SYNTHETIC_QUICK = {"slices": 25, "burn_in": 15}
_AIRPORT: dict[str, Any] = {
    "paper": _MRI_SETTINGS,
    "size": {"slices": 60, "burn_in": 9, "stride": 1},
    "quick": {"slices": 14, "burn_in": 9},
    "frames": (9, 49),
}


def _both(
    condition: Condition, methods: tuple[str, ...], shows: str, suffix: str = "", **more: Any
) -> tuple[Panel, ...]:
    """One panel for each generator."""
    generators = (("authors' generator", "authors"), ("drifting normal factors", "drifting"))
    return tuple(Panel(title, name + suffix, condition, methods, shows, **more) for title, name in generators)


_ALL = (
    PaperFigure(
        "synthetic-factorization",
        "Synthetic stream, factorized",
        "Relative error of the low rank against the truth, slice by slice; rank 5, every entry shown, 2 % corrupted.",
        _DRAWS
        + "Undertow runs with its defaults; the baselines and the paper's model are given the true rank. Baselines get "
        "their published settings and data of unit size; naive methods, which the paper leaves out, are shown.",
        "curves",
        _both(_FULL, _COMPLETE, "all_error", quick=_SYNTHETIC_QUICK),
        _SHORT,
    ),
    PaperFigure(
        "synthetic-completion",
        "Synthetic stream, completed from 15 %",
        "Relative error of the low rank on the 85 % of entries that were hidden; rank 5, 2 % corrupted.",
        _DRAWS + "Every method gets the same 15 %: in the authors' script their own method was given all entries, the "
        "baselines 15 %. The error is taken on hidden entries.",
        "curves",
        _both(_SAMPLED, _STREAMING, "hidden_error", quick=_SYNTHETIC_QUICK),
        _SHORT,
    ),
    PaperFigure(
        "batch",
        "Streaming against batch BRTF",
        "The same streams; BRTF factorizes all slices stacked into one tensor, the future included.",
        "BRTF gets 100 iterations, tolerance 1e-6, the true rank and data of unit size, and the same mask as "
        "the others. The error is that of the low rank on hidden entries.",
        "curves",
        _both(_SAMPLED, (*_UNDERTOW, "brtf"), "hidden_error", quick=_SYNTHETIC_QUICK),
        _SHORT,
    ),
    PaperFigure(
        "rank",
        "Rank over time",
        "Components in use after every slice, and what they are worth: 50×50, rank 10, 10 % corrupted, 10 % shown.",
        "The paper's model has the paper's window 20 and forgetting 0.8 and at most 20 components; Undertow has "
        "its defaults. The paper shows the rank alone; a rank says little without the error, so the error on "
        "hidden entries is shown below it.",
        "curves",
        tuple(
            panel
            for shows in ("rank", "hidden_error")
            for panel in _both(_SEVERE, (*_UNDERTOW, "brtf"), shows, "_rank10", paper=_RANK_SETTINGS, quick=_RANK_QUICK)
        ),
        "Quick run: 20 slices of 40×40 instead of 100 of 50×50, one seed.",
    ),
    PaperFigure(
        "airport-factorization",
        "Airport hall, factorized",
        "Frames 10 and 50 of the video and the low rank that each method finds; rank 15 for the baselines.",
        "A complete recording has no hidden truth: repeating the frame would be without error. The number that means "
        "something is the error of the prediction of each frame before it is seen, and it is given for all; the "
        "picture is the paper's. Pixels are divided by the mean of the first frame for methods that need it.",
        "pictures",
        (Panel("every pixel shown", "airport", Condition(1.0), _COMPLETE, "prediction_error", **_AIRPORT),),
        _CROPPED,
        seeds=1,
    ),
    PaperFigure(
        "airport-completion",
        "Airport hall, completed from 15 %",
        "Frames 10 and 50, of which every method saw the same 15 % of the pixels.",
        "The same mask for all, and the error on hidden pixels. Frame 10 comes before the windows are full: it shows "
        "how quickly a method starts.",
        "pictures",
        (Panel("15 % of the pixels shown", "airport", Condition(0.15), _STREAMING, "hidden_error", **_AIRPORT),),
        _CROPPED,
        seeds=1,
    ),
    PaperFigure(
        "mri",
        "Heart MRI from 15 %",
        "PINCAT phantom, 128×128: two moments of the heart beat, of which every method saw the same 15 %.",
        "The paper's model has the paper's rank 15, window 20 and forgetting 0.98, Undertow its defaults. Error on "
        "hidden pixels. Online-SGD here streams; the published one passes over the whole tensor.",
        "pictures",
        (
            Panel(
                "15 % of the pixels shown",
                "pincat",
                Condition(0.15),
                _STREAMING,
                "hidden_error",
                paper=_MRI_SETTINGS,
                size={"stride": 1},
                quick={"slices": 15, "burn_in": 9},
                frames=(24, 35),
            ),
        ),
        _CROPPED,
        seeds=1,
    ),
    PaperFigure(
        "multislice",
        "Multi-slice heart MRI, 50 % missing",
        "Slices are volumes of 150×150×5; two cross sections at one moment of the second beat.",
        "The paper's data set (York) is not at hand: Sunnybrook cine, cropped to the same size, one beat played twice. "
        "The paper shows its own method alone, because the published codes of the others take matrices "
        "only; those here take any order. "
        "The paper's model has rank 30, window 5, forgetting 0.98.",
        "pictures",
        (
            Panel(
                "half of the voxels shown",
                "sunnybrook",
                Condition(0.5),
                _STREAMING,
                "hidden_error",
                paper=_MULTISLICE_SETTINGS,
                size={"stride": 1},
                quick={"slices": 8, "burn_in": 4, "stride": 5, "crop": 16},
                frames=(22,),
            ),
        ),
        _CROPPED,
        seeds=1,
    ),
    PaperFigure(
        "abilene-factorization",
        "Abilene traffic, factorized",
        "Left, the paper's form, ‖X − L‖ / ‖X‖ on a complete recording; right, the error of the prediction of each "
        "matrix before it is seen.",
        "The paper's error is ‖X − L − S‖; its sparse part S is free on every shown entry, so it measures little and "
        "depends on the unit of the data. Without S, repeating the last value still scores zero on the left: only the "
        "right panel compares methods.",
        "curves",
        tuple(
            Panel(title, "abilene", Condition(1.0), _COMPLETE, shows, size=_ABILENE, quick=_ABILENE_QUICK)
            for title, shows in (("‖X − L‖ / ‖X‖", "all_error"), ("test-then-train", "prediction_error"))
        ),
        "Quick run: 25 matrices instead of 300, one seed.",
        seeds=1,
    ),
    PaperFigure(
        "abilene-completion",
        "Abilene traffic, completed from 50 %",
        "Relative error of the low rank on the half of the entries that were hidden; ten slices of burn-in.",
        "The same mask for all, the error of L alone on hidden entries. The paper adds its sparse part, which is free "
        "on shown entries.",
        "curves",
        (
            Panel(
                "50 % shown", "abilene", Condition(0.5), _STREAMING, "hidden_error", size=_ABILENE, quick=_ABILENE_QUICK
            ),
        ),
        "Quick run: 25 matrices instead of 300, one seed.",
        seeds=1,
    ),
)

FIGURES: Mapping[str, PaperFigure] = {figure.name: figure for figure in _ALL}


def chosen(names: list[str]) -> list[PaperFigure]:
    """The figures named; "all" or nothing for all. An unknown name is answered with the known ones."""
    return pick("figure", None if names in ([], ["all"]) else names, FIGURES)
