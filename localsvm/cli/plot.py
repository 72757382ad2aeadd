"""Command `lsvm plot`."""

from __future__ import annotations

import click

from localsvm.cli import options as opt
from localsvm.cli.paths import check_outputs, seekable
from localsvm.cli.program import Program, examples
from localsvm.cli.value_types import FileName, Group


@click.command(
    cls=Program,
    epilog=examples(
        "lsvm plot model.h5 weights.png", "lsvm plot --data train.libsvm rank2.model.h5 plane.png  # --metric rank:2"
    ),
)
@opt.file_argument("file", metavar="METRIC|MODEL")
@opt.file_argument("output", metavar="OUTPUT")
@opt.option(
    "--data",
    metavar="FILE",
    type=FileName(),
    help="Draw the rows of FILE in the plane of a metric onto 2 dimensions, or of a model's only 2 features.",
    group=Group.DATA,
)
@opt.force
def plot(file: str, output: str, data: str | None, force: bool) -> None:
    """Draw the metric of a model or partition file into OUTPUT (.png, .pdf or .svg; needs matplotlib).

    The weights of the features, the largest first, 30 at most; of members the plain mean. With --data and a metric onto
    2 dimensions instead: rows of FILE, 2000 at most, the support vectors and the decision values in the learned plane,
    beside the plane of PCA. With --data and a model of 2 features: rows, predictions, and the borders of the cells
    where each row has one, in the plane of these.
    """
    from localsvm.cli import plotting
    from localsvm.errors import OptionError

    if output == "-":
        raise OptionError("a picture is written into a file; name one that ends in .png, .pdf or .svg")
    check_outputs(force, [file, data], [output])
    plotting.check(output)

    from localsvm.cli import metric_plot
    from localsvm.runs.prediction.picture import feature_plane, shown

    path = seekable(file, "a file with a metric")
    if data is not None:
        with feature_plane(path) as plane:
            if plane is not None:
                metric_plot.two_features(plane, data, output, force)
                return
    with shown(path) as picture:
        if data is None:
            metric_plot.weights(picture, output, force)
        else:
            metric_plot.planes(picture, data, output, force)
