"""The `kernelne` command.

Exit codes: 0 success, 1 failure after the work had started, 2 invalid arguments or input (nothing was done),
130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.

A command imports the modules it needs when it runs, so that `kernelne --help` is quick.
"""

from __future__ import annotations

import errno
import io
import signal
import sys
import tempfile
import warnings
from typing import Annotated, Any

import typer

from kernelne._common.memory import fit_libraries
from kernelne._version import __version__
from kernelne.cli import (  # fmt: skip
    compare,
    convert,
    datasets,
    demo,
    embed,
    evaluate,
    explore,
    grow,
    links,
    plot,
    predict,
    recommend,
    signals,
    similar,
    tune,
)
from kernelne.cli.options import option_of
from kernelne.cli.output import Run, say
from kernelne.errors import KernelneError, ParameterError

app = typer.Typer(
    name="kernelne",
    help="Node embeddings by kernel factorisation of random walks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    embed.embed, embed.info, predict.predict, evaluate.classify, evaluate.cluster, links.links,
    recommend.recommend, similar.similar, explore.explore, plot.plot, compare.compare, tune.tune,
    convert.convert, grow.update, grow.fold_in, demo.demo,
):  # fmt: skip
    app.command()(_command)
app.add_typer(datasets.app)

_INTERRUPTED = 128 + signal.SIGINT

# Some versions of Typer include click, others depend on it; this finds the class in both cases.
_UsageError: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"kernelne {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Node embeddings by kernel factorisation of random walks."""
    fit_libraries()


def _show_warning(message: Warning | str, *rest: Any, **more: Any) -> None:
    say(f"warning: {message}")


def _run(args: list[str] | None) -> int:
    """Run the command, print an error in one line, and return the exit code."""
    try:
        code = app(args, prog_name="kernelne", standalone_mode=False)
        if Run.stopped_by is not None:
            return 128 + Run.stopped_by
        if code != _INTERRUPTED:  # some versions of Typer return a code for Ctrl-C, others raise
            return code if isinstance(code, int) else 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except _UsageError as error:
        if not error.format_message():  # type: ignore[attr-defined]
            return 2  # no arguments at all: the help has been shown
        say(f"error: {error.format_message()} (see --help)")  # type: ignore[attr-defined]
        return 2
    except (KeyboardInterrupt, typer.Abort) as stopped:
        Run.last_error = stopped
    except signals.Stopped as stopped:
        Run.last_error = stopped
        say(f"stopped by {stopped.name}: nothing was written")
        raise
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except (KernelneError, OSError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        if isinstance(error, OSError) and error.filename is not None:
            reason = f"{error.filename}: {error.strerror}"
        elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
            # Files that are asked for name themselves: what is left are temporary files and what is printed.
            reason = f"{error.strerror}, for standard output or in {tempfile.gettempdir()}"
        if isinstance(error, ParameterError):
            reason = option_of(error.name) + reason.removeprefix(error.name)
        say(f"error: {' '.join(reason.split())}")
        return 1 if Run.begun else 2
    say("interrupted: nothing was written")
    return _INTERRUPTED


def main(args: list[str] | None = None) -> int:
    """Run the console script with `args` (default: those of the process) and return its exit code."""
    Run.begun, Run.stopped_by = False, None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for names that the terminal cannot show
    with signals.handled(), warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _show_warning
        return _run(args)
