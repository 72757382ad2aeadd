"""Options of a method, declared as fields of its dataclass."""

from __future__ import annotations

from dataclasses import Field, field
from typing import Any

from localsvm.naming import opt


def option(
    default: Any, *flags: str, help: str, choices: tuple[str, ...] = (), shown: str = "", later: bool = False,
    became_list: bool = False,
) -> Any:  # fmt: skip
    """A method's field with its command-line option.

    Parameters
    ----------
    default : of the annotated type bool, int, float, str, or tuple[float, ...], () for a default grid.
    flags, help, choices : as click has them: "-C", "--cost", "--offset/--no-offset" for a bool; values of a str.
    shown : the default in the help, where it is none of the values.
    later : it came after the first models of the method; a model without it has its default.
    became_list : the first models have it as one number.
    """
    marks = {name: True for name, given in (("later", later), ("became_list", became_list)) if given}
    return field(default=default, metadata={"flags": flags, "help": help, "choices": choices, "shown": shown, **marks})


def tolerance_option(default: float) -> Any:
    """The option -e, whose default is the method's own."""
    text = (
        "How far from the optimum the solver may stop. The distance is the duality gap divided by C n; for linear "
        f"methods, mkl and mllkm the gap divided by the objective; with {opt.offset}, and for svm-knn, the violation "
        "of the optimality (KKT) conditions, as in LIBSVM; for ml3 what the last round gained, over the objective."
    )
    return option(default, "-e", "--tolerance", help=text)


def kind_of(field: Field[Any]) -> str:
    """The type of an option as it is written, whether the file postpones the evaluation of annotations or not."""
    kind = field.type
    return kind if isinstance(kind, str) else kind.__name__ if type(kind) is type else str(kind)
