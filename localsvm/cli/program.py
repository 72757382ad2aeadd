"""Parts that all commands share: exit codes, signals, and one message for a user's mistake.

Exit codes: 0 success, 1 bad data, model or run, 2 bad usage, 124 out of time, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any, NoReturn

import click

from localsvm import __version__
from localsvm.cli import method_options
from localsvm.cli.other_tools import UNKNOWN
from localsvm.cli.value_types import Group, Option
from localsvm.errors import LocalSVMError, MethodError
from localsvm.memory import check_addresses, shortage
from localsvm.naming import on_command_line

HELP_WIDTH = 100  # columns at most
OUT_OF_TIME = 124  # as of the program timeout
INTERRUPTED = 130
TERMINATED = 143
_AGAIN: list[threading.Timer] = []  # signals that come again


class Terminated(BaseException):
    """SIGTERM as an exception, so that workers and temporary files are cleaned up as after Ctrl-C."""


class OutOfTime(BaseException):
    """The end of --time-limit, which stops a run as Ctrl-C does."""


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `OutOfTime` in the block after so many seconds, never for None; only in the main thread."""
    if seconds is None:
        yield
        return
    previous = signal.signal(signal.SIGALRM, _out_of_time)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)  # which may be over before the next line
        yield
    finally:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        finally:  # the alarm may come before the line above
            signal.signal(signal.SIGALRM, previous)


def examples(*lines: str) -> str:
    """Examples of command lines, for the end of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class Guarded(click.Command):
    """A command that ends with the exit codes above."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run as click does, but with the exit codes above."""
        run = partial(super().main, args, prog_name, complete_var, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        with _stoppable():
            code = _exit_code(run)
        sys.exit(code)


class Program(Guarded):
    """A command that turns errors into one message and explains options known from other tools."""

    def __init__(self, *args: Any, **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.context_settings["max_content_width"] = HELP_WIDTH
        flag = partial(Option, is_flag=True, expose_value=False)
        self.params += [
            flag(["--debug"], callback=_set_debug, help="Show tracebacks of errors."),
            flag(["--version"], callback=_print_version, is_eager=True, help="Show the version and exit."),
        ]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by their groups."""
        lines: dict[Group, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            line = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if line is not None:
                lines.setdefault(getattr(param, "group", Group.RUNNING), []).append(line)
        for group in [group for group in Group if group in lines]:
            with formatter.section(group.value):
                formatter.write_dl(lines[group])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, but an option of another tool gets a message with its name here."""
        if not ctx.resilient_parsing and (problem := method_options.problem() or self._clash()):
            _fail(ctx, str(problem), problem.exit_code)
        try:
            if not ctx.resilient_parsing and "--help" not in args:
                check_addresses()
            return super().parse_args(ctx, args)
        except LocalSVMError as error:
            _fail(ctx, str(error), error.exit_code)
        except click.NoSuchOption as error:
            if error.option_name in UNKNOWN:
                raise click.UsageError(f"{error.message} {UNKNOWN[error.option_name]}", ctx) from None
            raise

    def _clash(self) -> MethodError | None:
        """Error for a method's option that has the name or a flag of an option of all methods; None without one."""
        owner: dict[str | None, click.Parameter] = {}
        for param in self.params:
            for key in (param.name, *param.opts, *param.secondary_opts):
                if owner.setdefault(key, param) is not param:
                    names = f"{owner[key].opts[0]} and {param.opts[0]}"
                    return MethodError(
                        f"LOCALSVM_METHODS: {key} has two meanings, in {names}; rename the method's option"
                    )
        return None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A user's mistake ends it with a message and an exit code."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except LocalSVMError as error:
            _fail(ctx, str(error), error.exit_code)
        except BrokenPipeError:
            _drop_stdout()
            ctx.exit(1)
        except Exception as error:
            if message := shortage(error):
                _fail(ctx, message, 1)
            if not isinstance(error, OSError):
                raise
            _drop_stdout()
            _fail(ctx, f"{error.filename or 'output'}: {error.strerror or error}", 1)


def _set_debug(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.meta["localsvm.debug"] = value


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"localsvm, version {__version__}")
        ctx.exit()


def _fail(ctx: click.Context, message: str, code: int) -> NoReturn:
    if ctx.meta.get("localsvm.debug"):
        traceback.print_exc()
    click.echo(f"error: {on_command_line(message)}", err=True)
    ctx.exit(code)


def _drop_stdout() -> None:
    """Discard what stdout still buffers, because it cannot be written: else Python complains when it ends."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())


def _exit_code(run: Callable[[], Any]) -> int:
    try:
        return int(run() or 0)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Terminated:
        return TERMINATED
    except OutOfTime:
        return OUT_OF_TIME
    except OSError as error:  # of help and usage, which are printed outside of `invoke`
        _drop_stdout()
        if not isinstance(error, BrokenPipeError):
            click.echo(f"error: output: {error.strerror or error}", err=True)
        return 1
    except click.ClickException as error:
        error.show()
        return error.exit_code


def _interrupt(number: int, frame: FrameType | None) -> None:
    _raise(KeyboardInterrupt, number, frame)


def _terminate(number: int, frame: FrameType | None) -> None:
    _raise(Terminated, number, frame)


def _out_of_time(_number: int, frame: FrameType | None) -> None:
    if _importing(frame):
        signal.setitimer(signal.ITIMER_REAL, 0.01)  # again, when that is done
    else:
        raise OutOfTime


def _raise(error: type[BaseException], number: int, frame: FrameType | None) -> None:
    """Raise the error; if a module is being imported, the signal comes again a moment later."""
    if not _importing(frame):
        raise error
    again = threading.Timer(0.01, signal.pthread_kill, (threading.get_ident(), number))
    again.daemon = True
    try:
        again.start()
    except RuntimeError:  # no room for a thread
        os._exit(128 + number)
    _AGAIN.append(again)


def _importing(frame: FrameType | None) -> bool:
    """True while a module is being imported: extension modules make other errors, and output, of an exception then."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Turn SIGTERM into `Terminated`, and Ctrl-C into KeyboardInterrupt; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {signal.SIGTERM: signal.signal(signal.SIGTERM, _terminate)}
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        previous[signal.SIGINT] = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        while _AGAIN:
            _AGAIN.pop().cancel()
        for number, handler in previous.items():
            signal.signal(number, handler)
