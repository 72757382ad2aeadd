"""The extensions of localsvm; everything else is in pyproject.toml.

LOCALSVM_DEV=1 makes C warnings errors; LOCALSVM_BOUNDSCHECK=1 makes Cython check every index, for `make sanitize`.
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

CHECKED = bool(os.environ.get("LOCALSVM_BOUNDSCHECK"))
LEVELS = ["baseline", "avx2", "avx512", "baseline_unfused", "avx2_unfused"]
EXTENSIONS = {
    # the hot loops are compiled once: the others are handed the table of a level by this one
    "localsvm._core": ["csrc/simd.c", *(f"csrc/level_{level}.c" for level in LEVELS)],
    "localsvm.kernels._kernels": ["csrc/kernels.c"],
    "localsvm.kernels._local_maps": ["csrc/local_maps.c"],
    "localsvm.solvers._smo": ["csrc/smo.c", "csrc/lasvm.c"],
    "localsvm.solvers._linear": ["csrc/linear.c", "csrc/sdca.c"],
    "localsvm.solvers._ml3": ["csrc/ml3.c"],
    "localsvm.solvers._conjugate": ["csrc/conjugate.c"],
    "localsvm.solvers._ridge": ["csrc/ridge.c", "csrc/holdout.c"],
    "localsvm.representations._mixture": ["csrc/mixture.c"],
    "localsvm.partition._nearest": ["csrc/nearest.c"],
    "localsvm.data._text": ["csrc/libsvm_text.c", "csrc/libsvm_count.c"],
    "localsvm.data._csv": ["csrc/csv_text.c"],
}
# their compilers run at the same time, and would write the object file of a C file that two of them have
assert len({file for files in EXTENSIONS.values() for file in files}) == sum(map(len, EXTENSIONS.values()))
# -ffp-contract and -fno-math-errno let plain loops become fused vector code; no -march: levels are chosen at run time
FLAGS = ["-std=gnu99", "-O3", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wstrict-prototypes", "-Werror"]
# what Cython generates is not ours to clean: these warnings stay on for csrc/ (make check-c) and off in its output
# Python's own flags ask for debug information, six sevenths of a wheel; with -g in CFLAGS it is there
DEBUG = [] if "-g" in os.environ.get("CFLAGS", "").split() else ["-g0"]
CYTHON = ["-Wno-conversion", "-Wno-sign-conversion", "-Wno-shadow", "-Wno-unused-parameter", "-Wno-strict-prototypes"]


def extension(name: str, sources: list[str]) -> Extension:
    """Extension module of this name, from its Cython file and some C files."""
    flags = FLAGS + DEBUG + (STRICT + CYTHON if os.environ.get("LOCALSVM_DEV") else [])
    return Extension(
        name,
        [name.replace(".", "/") + ".pyx", *sources],
        include_dirs=["csrc"],
        depends=[str(p) for p in Path("csrc").glob("*.h")],
        extra_compile_args=flags,
    )


setup(
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=cythonize(
        [extension(*item) for item in EXTENSIONS.items() if Path(item[0].replace(".", "/") + ".pyx").exists()],
        build_dir="build/sanitize/cython" if CHECKED else None,
        compiler_directives={
            "language_level": 3,
            "boundscheck": CHECKED,
            "wraparound": CHECKED,
            "cdivision": True,
        },
    ),
)
