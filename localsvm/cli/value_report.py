"""Pictures of `lsvm predict --report` for values: predictions against observations, residuals, shares that hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.cli.score_report import Pictures
    from localsvm.runs.prediction.value_report import ValueReport

    Values = NDArray[np.float64]

MOST_POINTS = 2000  # rows with a point of their own; more are counted in hexagons
HEXAGONS, BARS = 60, 60  # along an axis; of the histogram
OUTSIDE, MARGIN = 0.1, 0.04  # per cent of the rows beyond each end of an axis; and room, as a share of it
LEGEND = 12  # levels with a line in the legend, at most


def pictures(report: ValueReport) -> Pictures:
    """Functions that draw a report in a figure, by names of files; that of shares where something has a level."""
    drawn: Pictures = {"predicted-observed.png": _observed, "residuals.png": _residuals}
    return {**drawn, "reliability.png": _reliability} if report.levelled or report.coverage is not None else drawn


def _observed(figure: Any, report: ValueReport) -> None:
    """Observed values over predicted ones, in one scale."""
    import numpy as np

    y, answers, _ = report.drawn()
    f, axes = answers[:, report.middle], figure.subplots()
    low, high = _ends(np.concatenate([y, f]))
    _rows(figure, axes, f, y, (low, high, low, high))
    axes.plot([low, high], [low, high], color="C3", linewidth=1)
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal", xlabel=_name(report), ylabel="observed value")
    axes.locator_params(nbins=7)
    inside = (np.minimum(y, f) >= low) & (np.maximum(y, f) <= high)
    axes.set_title(_title(report, report.as_dict()["answers"][report.middle], inside), fontsize="medium")


def _title(report: ValueReport, scores: dict[str, Any], inside: NDArray[np.bool_]) -> str:
    """Scores, and how many rows there are, are drawn, and lie outside."""
    error, r2 = scores["root_mean_squared_error"], scores["r2"]
    known = [text.format(value) for text, value in (("RMSE {:.5g}", error), ("R^2 {:.4f}", r2)) if value is not None]
    rows = f"{len(inside):,} of {report.rows:,} rows" if len(inside) < report.rows else f"{report.rows:,} rows"
    outside = f", {(~inside).sum():,} outside" if not inside.all() else ""
    return ", ".join(known) + f"\n{rows}{outside}"


def _name(report: ValueReport) -> str:
    return f"predicted value{f' at level {report.levels[report.middle]:g}' if len(report.levels) > 1 else ''}"


def _ends(values: Values) -> tuple[float, float]:
    """Ends of an axis, which a few values far away do not stretch."""
    import numpy as np

    low, high = np.percentile(values, [OUTSIDE, 100.0 - OUTSIDE])
    room = MARGIN * (high - low) or 1e-3 * abs(low) or 1.0  # values in one point
    return float(low - room), float(high + room)


def _rows(figure: Any, axes: Any, x: Values, y: Values, extent: tuple[float, float, float, float]) -> None:
    """Draw rows as points, or count them in hexagons. extent : ends of the axes."""
    if len(x) <= MOST_POINTS:
        axes.scatter(x, y, s=9, color="C0", alpha=0.5, linewidths=0)
        return
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("rows", ["#c6dbef", "C0", "#08306b"])
    style = {"gridsize": HEXAGONS, "bins": "log", "mincnt": 1, "cmap": colours, "linewidths": 0.1}
    figure.colorbar(axes.hexbin(x, y, extent=extent, **style), ax=axes, label="rows")


def _residuals(figure: Any, report: ValueReport) -> None:
    """Residuals over predictions, with their quantiles in bins, and a histogram."""
    import numpy as np

    y, answers, _ = report.drawn()
    f = answers[:, report.middle]
    r, summary = y - f, report.as_dict()
    bins, scores = summary["bins"], summary["answers"][report.middle]
    axes, counts = figure.subplots(1, 2, sharey=True, width_ratios=[3, 1])
    low, high = _ends(r)
    _rows(figure, axes, f, r, (*_ends(f), low, high))
    axes.axhline(0.0, color="0.3", linewidth=0.8)
    x, q = [each["prediction"] for each in bins], np.asarray([each["residual_quantiles"] for each in bins]).T
    for line, style, name in ((q[2], "o-", "median"), (q[1], "--", "middle half"), (q[0], ":", "middle 90 %")):
        axes.plot(x, line, style, color="C3", markersize=3, linewidth=1.2, label=name)
    axes.plot(x, q[3], "--", x, q[4], ":", color="C3", linewidth=1.2)
    axes.set(xlim=_ends(f), ylim=(low, high), xlabel=_name(report), ylabel="observed minus predicted")
    axes.locator_params(axis="x", nbins=6)
    axes.legend(loc="upper left", fontsize="small")
    counts.hist(r, BARS, range=(low, high), orientation="horizontal", color="C0")
    counts.set(xlabel="rows")
    size, mean = scores["mean_absolute_error"], scores["mean_residual"]
    figure.suptitle(
        f"mean absolute error {size:.5g}, mean residual {mean:.3g}, {report.rows:,} rows", fontsize="medium"
    )


def _reliability(figure: Any, report: ValueReport) -> None:
    """Shares of values that are not above the answers of each level, or inside intervals, by the prediction."""
    import numpy as np
    from matplotlib import colormaps

    summary = report.as_dict()
    bins, coverage = summary["bins"], summary["coverage"]
    x = [each["prediction"] for each in bins]
    axes, *rest = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1]) if coverage else [figure.subplots()]
    levels = report.levels if report.levelled else []
    step = -(-len(levels) // LEGEND)
    colours = colormaps["viridis"](np.linspace(0.0, 0.85, max(1, len(levels))))
    for k, (level, colour) in enumerate(zip(levels, colours, strict=False)):
        below = summary["answers"][k]["below"]  # None where no value is apart from its answer
        text = f"level {level:g}" + ("" if below is None else f": {below:.2%}")
        share = text if k % step == 0 else None
        axes.plot(x, [each["below"][k] for each in bins], "o-", color=colour, markersize=4, label=share)
        axes.axhline(level, color=colour, linestyle="--", linewidth=0.8)
    if coverage:
        label = f"interval of {coverage['asked']:g}: {coverage['covered']:.2%}"
        axes.plot(x, [each["covered"] for each in bins], "s-", color="C3", markersize=4, label=label)
        axes.axhline(coverage["asked"], color="C3", linestyle="--", linewidth=0.8)
        rest[0].plot(x, [each["width"] for each in bins], "s-", color="C3", markersize=4)
        rest[0].set(ylabel="mean width", ylim=(0, None))
    both = f"share of {report.counted}, share inside"
    what = f"share of {report.counted} not above" if not coverage else both if levels else "share of values inside"
    lowest = min([0.0] if levels else [each["covered"] for each in bins])
    axes.set(ylabel=what, ylim=(max(-0.02, lowest - 0.05), 1.02))
    (rest[0] if rest else axes).set_xlabel(_name(report))
    figure.legend(loc="outside upper center", ncols=3, fontsize="small", frameon=False)
