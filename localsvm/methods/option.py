"""Options of a method, declared as fields of its dataclass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import Field, field
from types import MappingProxyType
from typing import Any

from localsvm.naming import opt
from localsvm.targets.loss_names import SQUARED_HINGE

FROM_ZERO = ("epsilon",)  # options that may be 0, beside those of which a default is
EVENLY = ("quantile",)  # options whose ranges are even: those of others are geometric
MOST_STORED = (1 << 31) - 1  # the largest number that a model file keeps as int32


def option(
    default: Any, *flags: str, help: str, choices: tuple[str, ...] = (), shown: str = "", later: bool = False,
    became_list: bool = False, unsaid: bool = False, aliases: Mapping[str, str] = MappingProxyType({}),
) -> Any:  # fmt: skip
    """A method's field with its command-line option.

    Parameters
    ----------
    default : of the annotated type bool, int, float, str, or tuple[float, ...], () for a default grid.
    flags, help, choices : as click has them: "-C", "--cost", "--offset/--no-offset" for a bool; values of a str.
    shown : the default in the help, where it is none of the values.
    later : it came after the first models of the method; a model without it has its default.
    unsaid : a model is without it where it has its default.
    became_list : the first models have it as one number.
    aliases : other names of some choices.
    """
    marks = {
        name: True
        for name, given in (("later", later or unsaid), ("became_list", became_list), ("unsaid", unsaid))
        if given
    }
    given = {"flags": flags, "help": help, "choices": choices, "shown": shown, "aliases": aliases}
    return field(default=default, metadata={**given, **marks})


def kernel_option(*choices: str, later: bool = False) -> Any:
    """The option -t, of which a method has some of the values; the first one is the default."""
    text = (
        "The kernel. gaussian: exp(-gamma |x-y|^2); laplacian: exp(-gamma |x-y|); manhattan: exp(-gamma sum_j "
        "|x_j-y_j|); polynomial: (gamma x.y + coef0)^degree; linear: x.y; auto: gaussian, or the one that "
        f"{opt.metric('auto')} chooses. svml has no gamma."
    )
    return option(choices[0], "-t", "--kernel", help=text, choices=choices, later=later)


def cost_option(default: tuple[float, ...] = ()) -> Any:
    """The option -C, whose default is the method's own, () for a default grid."""
    text = (
        "Cost C, LIBSVM's -c: one value, a list (0.1,1,10) or a geometric range LOW:HIGH:COUNT (2^-5:2^3:9). "
        "Cross-validation chooses from several values."
    )
    return option(default, "-C", "--cost", help=text)


def solver_option(*choices: str, later: bool = False) -> Any:
    """The option -s, of which a method has some of the values; the first one is the default."""
    text = (
        "How a linear method is solved. auto: as fits the problem; sdca: dual coordinate ascent; primal: Newton's "
        f"method; sag: stochastic average gradient, with {opt.loss(SQUARED_HINGE)}; sgd: stochastic subgradients."
    )
    return option(choices[0], "-s", "--solver", help=text, choices=choices, later=later)


def loss_option(*choices: str, unsaid: bool = False) -> Any:
    """The option --loss, of which a method has some of the values; the first one is the default."""
    text = (
        "What a wrong prediction costs; it says what is predicted. Classes: hinge, squared-hinge, squared-error. "
        f"Values: least-squares, their mean; quantile and expectile, at the levels of {opt.quantile}; absolute, their "
        "median; "
        f"epsilon-insensitive and squared-epsilon-insensitive, where errors up to {opt.epsilon} cost nothing; huber, "
        f"squares up to {opt.epsilon}, and in proportion beyond."
    )
    aliases = {"squared": SQUARED_HINGE} if SQUARED_HINGE in choices else {}
    return option(choices[0], "--loss", help=text, choices=choices, unsaid=unsaid, aliases=aliases)


def quantile_option() -> Any:
    """The option --quantile, of the losses that have a level."""
    text = (
        "Levels of the quantiles (or expectiles) to predict, between 0 and 1: one, several, as .05,.5,.95, or .1:.9:9. "
        "They are predicted in ascending order."
    )
    return option((), "--quantile", help=text, shown="0.5", unsaid=True)


def epsilon_option() -> Any:
    """The option -p, of the losses that have an epsilon."""
    text = (
        f"The epsilon of a loss of values, in their units: one value, a list or a range, as of {opt.cost}; "
        "cross-validation chooses from several."
    )
    return option((), "-p", "--epsilon", help=text, shown="a tenth of the deviation of the values", unsaid=True)


def trend_option(*choices: str) -> Any:
    """The option --trend of kernel methods of values, which have some of the choices; the first one is the default."""
    text = (
        "What a model of values has beside its kernel, and goes on with where no row is near. linear: a slope, by "
        "ridge regression of each cell's rows; constant: none; auto: linear, for up to 256 columns, of svm alone."
    )
    return option(choices[0], "--trend", help=text, choices=choices, unsaid=True)


def tolerance_option(default: float) -> Any:
    """The option -e, whose default is the method's own."""
    text = (
        "How far from the optimum the solver may stop. The distance is the duality gap divided by C n; for values, "
        f"linear methods, mkl and mllkm divided by the objective; with {opt.offset}, and for svm-knn, the violation "
        "of the optimality (KKT) conditions, as in LIBSVM; for ml3 what the last round gained, over the objective."
    )
    return option(default, "-e", "--tolerance", help=text)


def are_whole(values: Iterable[float], most: float = math.inf) -> bool:
    """True where all values are whole numbers from 1, up to `most`; none of them is infinite or not a number."""
    return all(1 <= value <= most and float(value).is_integer() for value in values)


def kind_of(field: Field[Any]) -> str:
    """The type of an option as it is written, whether the file postpones the evaluation of annotations or not."""
    kind = field.type
    return kind if isinstance(kind, str) else kind.__name__ if type(kind) is type else str(kind)
