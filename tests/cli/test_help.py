"""Help of every command has an example, comes at once, and says the same as the documents."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from command_line import clean_environment, invoke

from localsvm import __version__
from localsvm.cli import options
from localsvm.cli.group import COMMANDS, lsvm
from localsvm.data.synthetic import banana
from localsvm.data.writers.libsvm import write
from localsvm.features.ranks import VIEWS
from localsvm.features.scaling import MODES
from localsvm.partition import REGISTRY
from localsvm.runs.config import ROOTS, TrainingConfig
from localsvm.targets import classification, regression
from localsvm.targets.detection import NPL

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("numpy", "scipy", "h5py", "sklearn", "joblib", "tqdm", "matplotlib")


def command_object(name: str) -> click.Command:
    command = lsvm.get_command(click.Context(lsvm), name)
    assert command is not None
    return command


def choices(name: str) -> tuple[str, ...]:
    option = next(p for p in command_object("train").params if p.name == name)
    assert isinstance(option.type, click.Choice)
    return tuple(option.type.choices)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example(name: str) -> None:
    text = invoke(name, "--help").stdout
    assert f"Usage: lsvm {name}" in text
    assert "Examples:" in text
    prefix = f"lsvm-{name} " if f"lsvm-{name} " in text else f"lsvm {name} "
    assert prefix in text.partition("Examples:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help(name: str) -> None:
    for param in command_object(name).params:
        assert isinstance(param, click.Argument) or (isinstance(param, click.Option) and param.help)


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_help_imports_nothing_heavy(name: str | None) -> None:
    code = (
        "import sys\nfrom localsvm.cli.group import lsvm\n"
        "try: lsvm(sys.argv[1:])\nexcept SystemExit: pass\n"
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    arguments = [name, "--help"] if name else ["--help"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("Usage: ") and done.stderr == "[]\n"


def test_no_run_waits_for_what_few_need() -> None:
    code = (
        "import sys\nimport localsvm.runs.predict, localsvm.runs.train\n"
        "from localsvm.methods import methods\nmethods()\n"
        "print([m for m in ('scipy.optimize', 'sklearn', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_a_prediction_imports_only_what_it_needs(tmp_path: Path) -> None:
    """Modules that a prediction does without, once half of its processor time, are not imported."""
    write(tmp_path / "rows", *banana(50, np.random.default_rng(0)))
    invoke("train", "-q", "-g", 1, "-C", 1, "--metric", "none", tmp_path / "rows", tmp_path / "m.h5")
    heavy = ("scipy.special", "scipy.linalg", "scipy.optimize", "sklearn", "pandas", "localsvm.methods.linear.linear")
    code = (
        "import sys\nfrom localsvm.cli.group import lsvm\n"
        "try:\n    lsvm(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    line = ("predict", "-q", tmp_path / "rows", tmp_path / "m.h5", tmp_path / "out")
    done = subprocess.run([sys.executable, "-c", code, *map(str, line)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_records_of_methods_import_nothing_that_takes_time() -> None:
    heavy = ("numpy", "scipy", "sklearn", "h5py", "localsvm.kernels._kernels", "localsvm.data", "localsvm.solvers")
    code = (
        f"import sys; from localsvm.methods import methods; methods(); print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_choices_and_defaults_are_those_of_the_library() -> None:
    assert choices("partition") == tuple(REGISTRY) == options.PARTITIONS
    assert choices("scale") == MODES == options.SCALES
    assert choices("views") == VIEWS == options.VIEWS
    assert choices("roots") == ROOTS == options.ROOTS
    assert choices("multiclass") == classification.SCHEMES
    assert choices("scoring") == tuple(dict.fromkeys((*classification.SCORES, NPL, *regression.SCORES)))
    defaults = TrainingConfig()
    for param in command_object("train").params:
        if isinstance(param, click.Option) and param.name in (
            "scale",
            "views",
            "roots",
            "folds",
            "grid",
            "multiclass",
            "seed",
        ):
            assert param.show_default == str(getattr(defaults, param.name))


def test_every_command_and_option_is_documented() -> None:
    pages = [ROOT / "docs" / name for name in ("command-line.md", "other-commands.md")]
    page = "".join(page.read_text(encoding="utf-8") for page in pages)
    lists = "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "options").glob("*.md")))
    for name in COMMANDS:
        assert f"## lsvm {name}\n" in page
        for param in command_object(name).params:
            for flag in [*param.opts, *param.secondary_opts] if isinstance(param, click.Option) else []:
                assert re.search(rf"(?<![\w-]){flag}(?![\w-])", lists), f"{name} {flag}"


def test_every_hint_is_for_an_option_that_is_not_there() -> None:
    from localsvm.cli.other_tools import UNKNOWN

    known = {flag for name in COMMANDS for param in command_object(name).params for flag in param.opts}
    assert not known & set(UNKNOWN)


def test_programs_are_the_commands() -> None:
    import tomllib

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["lsvm"] == "localsvm.__main__:lsvm"
    for name in ("train", "predict", "partition", "cv"):
        assert scripts[f"lsvm-{name}"] == f"localsvm.__main__:{name}"
        code = f"import sys; from localsvm.__main__ import {name}; sys.argv = ['lsvm-{name}', '--help']; {name}()"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.startswith(f"Usage: lsvm-{name} ")


def test_unknown_commands_and_missing_arguments() -> None:
    assert "Missing argument 'TRAIN_FILE'" in invoke("train", code=2).stderr
    assert "No such command 'trian'. Did you mean train?" in invoke("trian", code=2).stderr
    assert "No such command 'xyz'.\n" in invoke("xyz", code=2).stderr
    assert "Did you mean linear?" in invoke("train", "-m", "liner", "x", code=2).stderr
    assert "--cell-size" in invoke("train", "--cel-size", "100", "x", code=2).stderr


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_every_program_has_a_version(name: str | None) -> None:
    arguments = [name, "--version"] if name else ["--version"]
    assert invoke(*arguments).stdout == f"localsvm, version {__version__}\n"


def test_options_are_in_groups() -> None:
    text = invoke("train", "--help").stdout
    titles = re.findall(r"^(\w.*):$", text, flags=re.MULTILINE)
    kinds = ["Kernel methods", "Linear methods", "Single methods"]
    assert titles == ["Data", "Tables", "Partition", "Method", "Selection", *kinds, "Output", "Running"]
    parts = dict(zip(titles, re.split(r"^\w.*:$", text, flags=re.MULTILINE)[1:], strict=True))
    places = {"--scale": "Data", "-P": "Partition", "-m": "Method", "-C": "Method", "-v": "Selection"}
    places |= {"-g": "Kernel methods", "-t": "Kernel methods", "-s": "Linear methods", "--lambda": "Single methods"}
    places |= {"--loss": "Method", "--quantile": "Method", "--coverage": "Selection"}
    for flag, title in (places | {"-j": "Running", "--help": "Running"}).items():
        assert [name for name, part in parts.items() if re.search(rf"^  {flag}\b", part, re.MULTILINE)] == [title]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_fits_a_terminal(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "localsvm", name, "--help"],
        capture_output=True, text=True, check=True, env=clean_environment(COLUMNS="100"),
    )  # fmt: skip
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert done.stdout.startswith(f"Usage: lsvm {name} ")
