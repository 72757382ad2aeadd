"""Work on many machines: Apache Spark, as a `map` over parts of a text and over groups of what they give.

What is done to a part or a group is handed in, as plain functions that pickle carries. A mistake of the user that one
of them finds (a LocalSVMError) is a result like any other: Spark would try again what raises.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from localsvm.blas import ONE_THREAD
from localsvm.errors import LocalSVMError, RunError
from localsvm.naming import opt
from localsvm.parallel import parquet

Result = TypeVar("Result")
Pieces = Iterator[bytes]  # of a part's text, cut at line ends
Cut = Callable[[Iterable[Any]], Pieces]  # makes them of what a part consists of: lines, or what was handed in

PIECE_BYTES = 4 << 20  # of text, at most, that workers take at once
SHARED = "put it where all machines do (a shared folder, hdfs://, s3a://)"
NOT_SEEN = f"{{path}}: the workers of Spark do not see this input; {SHARED}"
NESTED = "{path}: a folder in the input folder, whose files are not read; move them up, or it away"
JAVA = 17  # the oldest that PySpark 4 runs on
ANSWER_SECONDS = 10.0  # in which a master has to take a connection
HANDED_ON = ("LOCALSVM_SIMD", "LOCALSVM_METHODS")  # variables that decide what workers compute
# Java only hands bytes on here: compiling its code as well as it can costs half of its processor time in a short run
JAVA_OPTIONS, QUICK = "JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1"
STANDALONE = re.compile(r"spark://([^:/,]+):(\d+)$")
PATTERN = set(",*?[]{}\\")
UNSEEN = ("FileNotFoundException", "InvalidInputException", "does not exist", "PATH_NOT_FOUND")


class SparkApplication:
    """A running Spark application; a context manager.

    Parameters
    ----------
    master : its URL, as spark-submit takes it.
    settings : further ones of Spark, by their names.

    Raises
    ------
    RunError : no PySpark, no Java, a master that does not answer.
    """

    def __init__(self, master: str, settings: dict[str, str] | None = None) -> None:
        self.master = master
        self._settings = settings or {}
        self._log: Any = None
        self._context: Any = None
        self._silence = logging.NullHandler()  # PySpark logs the trace of a call that an interrupt ends

    def __enter__(self) -> SparkApplication:
        _check_pyspark()
        _check_java()
        _check_master(self.master)
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway

        conf = SparkConf().setMaster(self.master).setAppName("localsvm")
        for name, value in (self._required() | self._settings).items():
            conf.set(name, value)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        self._log = tempfile.TemporaryFile()  # what Java says: for a message, where nothing starts
        logging.getLogger().addHandler(self._silence)
        interrupt, before = signal.getsignal(signal.SIGINT), os.environ.get(JAVA_OPTIONS)
        os.environ.setdefault(JAVA_OPTIONS, QUICK)
        try:
            # a session of its own: signals for this program's group are for this program
            gateway = launch_gateway(conf, {"stdout": self._log, "stderr": self._log, "start_new_session": True})
            self._context = SparkContext(conf=conf, gateway=gateway)
            self._context._accumulatorServer.handle_error = _ignored
        except Exception as error:
            what = f"Spark does not start: {self._said(error)}"
            if "parse Master URL" in str(error):
                what = "not a master of Spark; give one such as spark://HOST:7077, yarn or 'local[4]'"
            logging.getLogger().removeHandler(self._silence)
            raise RunError(f"{opt.master(self.master)}: {what}") from error
        finally:
            signal.signal(signal.SIGINT, interrupt)  # Spark takes it
            if before is None:
                del os.environ[JAVA_OPTIONS]
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        gateway = self._context._gateway
        with suppress(Exception):  # Java may have ended
            if kind is not None:
                self._context.cancelAllJobs()
            self._context.stop()
            gateway.shutdown()
        with suppress(OSError):
            gateway.proc.stdin.close()  # Java ends with it
        gateway.proc.wait()
        type(self._context)._gateway = type(self._context)._jvm = None  # so that another one may be started
        logging.getLogger().removeHandler(self._silence)
        self._log.close()

    def _required(self) -> dict[str, str]:
        variables = ONE_THREAD | {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        variables |= {JAVA_OPTIONS: os.environ.get(JAVA_OPTIONS, QUICK)}
        settings = {f"spark.executorEnv.{name}": value for name, value in variables.items()}
        settings |= {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
        host = STANDALONE.match(self.master)
        if self.master.startswith("local") or (host and host[1] in ("localhost", "127.0.0.1")):
            settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        return settings

    def _said(self, error: Exception) -> str:
        """The last line that Java wrote, or the first of the error."""
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        errors = [line for line in lines if "Exception" in line or "ERROR" in line or "rror:" in line]
        return _plain((errors or str(error).splitlines() or [type(error).__name__])[-1])

    def shared(self, path: str) -> Callable[[], str]:
        """Share a file of this machine with all workers; what is returned gives its path there.

        The file must stay until the session ends.
        """
        file = Path(path).resolve()  # Spark names it so, whatever links lead there
        self._context.addFile(file.as_uri())
        return partial(_place_of, file.name)

    @property
    def cores(self) -> int:
        """Number of cores of the workers, as far as they have come up."""
        return int(self._context.defaultParallelism)

    def text(self, path: str) -> Text:
        """The lines of a file, or of the files of a folder in the order of their names; of Parquet see `parquet`.

        path: of this machine, where it is there, or what Spark reads. RunError where it cannot be read.
        """
        url = f"file://{Path(path).resolve()}" if os.path.exists(path) else path
        java = self._context._jvm
        try:
            place = java.org.apache.hadoop.fs.Path(url)
            system = place.getFileSystem(self._context._jsc.hadoopConfiguration())
            inside = [(str(each.getPath().toString()), bool(each.isFile())) for each in system.listStatus(place)]
        except Exception as error:
            unseen = any(word in str(error) for word in UNSEEN)
            why = "no such file or folder" if unseen else f"Spark cannot read it: {_cause(str(error))}"
            raise RunError(f"{path}: {why}") from error
        inside = sorted(each for each in inside if not each[0].rpartition("/")[2].startswith(("_", ".")))
        if folder := next((name for name, is_file in inside if not is_file), None):
            raise RunError(NESTED.format(path=folder))
        names = [name for name, _ in inside]
        if not names:
            raise RunError(f"{path}: there is no file in this folder")
        if pattern := next((name for name in names if PATTERN & set(name)), None):
            raise RunError(f"{pattern}: Spark takes one of , * ? [ ] {{ }} \\ in a name for a pattern; rename it")
        if packed := next((name for name in names if name.endswith(".xz")), None):
            raise RunError(f"{packed}: Spark cannot decode xz; unpack it, or pack it again with gzip or bzip2")
        kinds = {name.endswith(parquet.SUFFIX) for name in names}
        if len(kinds) == 2:
            raise RunError(f"{path}: some files of this folder are Parquet ({parquet.SUFFIX}), and others are not")
        if kinds == {True}:
            return Text(self, path, _outcome(path, lambda: parquet.lines(self._context, path, names)))
        return Text(self, path, self._context.textFile(",".join(names), use_unicode=False))

    def of_parts(
        self, name: str, parts: list[Any], cut: Cut, head: Callable[[int], bytes] | None = None, kept: bool = False
    ) -> Text:
        """A text of these parts.

        Parameters
        ----------
        cut : makes pieces of a part where it is worked on.
        head : gives the first lines; None for what has none.
        kept : whether the pieces stay with the workers, in memory or on disk, once they are made.
        """
        rows = self._context.parallelize(parts, max(1, len(parts)))
        if not kept:
            return Text(self, name, rows, cut, head)
        from pyspark import StorageLevel

        return Text(self, name, rows.mapPartitions(cut).persist(StorageLevel.MEMORY_AND_DISK), iter, head)


class Text:
    """The lines of one or several files, in parts that follow each other. `SparkApplication` makes it."""

    def __init__(
        self, spark: SparkApplication, name: str, lines: Any,
        cut: Cut | None = None, head: Callable[[int], bytes] | None = None,
    ) -> None:  # fmt: skip
        self.spark, self.name, self.lines, self._cut, self._head = spark, name, lines, cut or _pieces, head

    def head(self, lines: int) -> bytes:
        """The first lines, or all where there are fewer."""
        if self._head is not None:
            return self._head(lines)
        return b"".join(line + b"\n" for line in _outcome(self.name, lambda: self.lines.take(lines)))

    def each(self, work: Callable[[int, Pieces], Result]) -> list[Result]:
        """Results of `work` for the number and the pieces of each part, in their order."""
        results = _outcome(
            self.name, lambda: self.lines.mapPartitionsWithIndex(partial(_done, work, self._cut)).collect()
        )
        return [_known(one) for one in results]

    def in_order(self, work: Callable[[int, Pieces], Result]) -> Generator[Result]:
        """Results as of `each`, one by one, few of them in memory; each part is a job of its own."""
        jobs = {part: partial(_worked, work, self._cut, part) for part in range(self.lines.getNumPartitions())}
        for _, result in _side_by_side(self, self.lines, jobs, in_order=True):
            yield result

    def groups(self, work: Callable[[int, Pieces], Iterable[tuple[int, Any]]], count: int) -> Groups:
        """Values that `work` gives of each part as (group, value), together by group 0 .. count - 1: one shuffle."""
        pairs = self.lines.mapPartitionsWithIndex(partial(_spread, work, self._cut, count))
        return Groups(self, pairs.partitionBy(count, _itself), count)


class Groups:
    """Values in groups. Nothing is done before the first group is asked for; then all parts are, once."""

    def __init__(self, text: Text, pairs: Any, count: int) -> None:
        self._text, self._pairs, self.count = text, pairs, count

    def unordered(
        self, work: Callable[[Any, list[Any]], Result], wanted: Mapping[int, Any]
    ) -> Generator[tuple[int, Result]]:
        """Pairs (group, result of `work` for wanted[group] and the values of the group), as they finish.

        Each group is a job of its own. The values of a group come in any order.
        """
        jobs = {group: partial(_gathered, work, asked) for group, asked in wanted.items()}
        yield from _side_by_side(self._text, self._pairs, jobs, in_order=False, remedy=f"; go on with {opt.resume}")


def _side_by_side(
    text: Text, rows: Any, work: Mapping[int, Callable[[Any], list[Any]]], in_order: bool, remedy: str = ""
) -> Generator[tuple[int, Any]]:
    """Pairs (part, the only result of its work) of some parts of an RDD, each a job of its own; few are begun."""
    context = text.spark._context
    waiting = list(work)[::-1]  # the numbers
    most = 2 * max(2, text.spark.cores)  # so that none waits for this program
    pending: dict[Future[Any], int] = {}
    with ThreadPoolExecutor(most) as threads:
        try:
            while waiting or pending:
                while waiting and len(pending) < most:
                    begun = waiting.pop()
                    pending[threads.submit(context.runJob, rows, work[begun], [begun])] = begun
                finished = [next(iter(pending))] if in_order else wait(pending, return_when=FIRST_COMPLETED).done
                for job in finished:
                    part = pending.pop(job)
                    yield part, _known(_outcome(text.name, job.result, remedy)[0])
        finally:
            if pending:
                with suppress(Exception):
                    context.cancelAllJobs()


class _Refused:
    """Mistake of the user, which a worker gives in place of a result."""

    def __init__(self, error: LocalSVMError) -> None:
        self.error = error


def _known(result: Any) -> Any:
    if isinstance(result, _Refused):
        raise result.error
    return result


def _done(work: Callable[[int, Pieces], Any], cut: Cut, part: int, lines: Iterable[Any]) -> Iterator[Any]:
    try:
        yield work(part, cut(lines))
    except LocalSVMError as error:
        yield _Refused(error)


def _worked(work: Callable[[int, Pieces], Any], cut: Cut, part: int, lines: Iterable[Any]) -> list[Any]:
    return list(_done(work, cut, part, lines))


def _spread(
    work: Callable[[int, Pieces], Iterable[tuple[int, Any]]], cut: Cut, count: int, part: int, lines: Iterable[Any]
) -> Iterator[tuple[int, Any]]:
    try:
        yield from work(part, cut(lines))
    except LocalSVMError as error:  # whoever asks for any group hears of it
        yield from ((group, _Refused(error)) for group in range(count))


def _gathered(work: Callable[[Any, list[Any]], Any], asked: Any, pairs: Iterable[tuple[int, Any]]) -> list[Any]:
    values = [value for _, value in pairs]
    refused = [value for value in values if isinstance(value, _Refused)]
    if refused:
        return refused[:1]
    try:
        return [work(asked, values)]
    except LocalSVMError as error:
        return [_Refused(error)]


def _place_of(name: str) -> str:
    from pyspark import SparkFiles

    return str(SparkFiles.get(name))


def _itself(group: int) -> int:
    return group


def _pieces(lines: Iterable[bytes]) -> Pieces:
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line) + 1
        if size >= PIECE_BYTES:
            yield b"\n".join(waiting) + b"\n"
            waiting, size = [], 0
    if waiting:
        yield b"\n".join(waiting) + b"\n"


def _outcome(name: str, job: Callable[[], Result], remedy: str = "") -> Result:
    """The result of a Spark job; RunError in one line where it fails, whose end says what to do."""
    try:
        return job()
    except LocalSVMError:
        raise
    except Exception as error:
        text = str(error)
        if any(word in text for word in UNSEEN):
            raise RunError(NOT_SEEN.format(path=name)) from error
        raise RunError(f"{name}: a job of Spark failed: {_cause(text)}{remedy}") from error


def _cause(text: str) -> str:
    """The line of a long report that says what happened."""
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    known = [line for line in lines if re.match(r"^(?:Caused by: )?[\w.]*(?:Exception|Error)\b.*: ", line)]
    return _plain((known or lines or ["no reason given"])[0].removeprefix("Caused by: "))[:300]


def _plain(line: str) -> str:
    """Line without the names of Java's classes before it."""
    return re.sub(r"^(?:.*\bERROR \S+: )?(?:[\w$]+\.)+[\w$]*(?:Exception|Error): (?=\S)", "", line.strip())


def _ignored(*_: object) -> None:
    """Print nothing, in place of a trace of a connection that ended with its process."""


def _check_pyspark() -> None:
    # PySpark warns of new versions of pandas, which is not used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise RunError(
            f"{opt.backend('spark')} needs PySpark, which is not installed: pip install 'localsvm[spark]'"
        ) from error


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    remedy = f"install Java {JAVA} or newer (openjdk-{JAVA}-jre-headless), or set JAVA_HOME"
    if java is None:
        raise RunError(f"{opt.backend('spark')} needs Java, and there is none{f' in {home}' if home else ''}; {remedy}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < JAVA:
        raise RunError(f"{java} is Java {version[1] if version else 'of an unknown version'}; {remedy}")


def _check_master(master: str) -> None:
    """Raise RunError where nothing answers at the address of a standalone master: Spark would try for minutes."""
    if address := STANDALONE.match(master):
        try:
            socket.create_connection((address[1], int(address[2])), ANSWER_SECONDS).close()
        except OSError as error:
            what = error.strerror or error
            raise RunError(
                f"{opt.master(master)}: no answer ({what}); start one (scripts/develop/spark-cluster.sh), or correct "
                "the address"
            ) from error
