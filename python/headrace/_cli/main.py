"""The command line: ``headrace demo | verify | bench | tune | report | top | pack | index | serve | doctor``."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from headrace._base.version import __version__
from headrace._cli import index_command, inputs, report_command, serve_command, top_command, verify_command
from headrace._cli.bench import bench_command
from headrace._cli.console import shell_completion
from headrace._cli.console.spelling import Parser
from headrace._cli.demo import demo_command
from headrace._cli.doctor import doctor_command
from headrace._cli.pack import pack_command
from headrace._cli.tune import tune_command

#: In the order of the help. A command's module imports what needs torch when the command runs.
_COMMANDS = (
    demo_command,
    verify_command,
    doctor_command,
    bench_command,
    tune_command,
    report_command,
    top_command,
    pack_command,
    index_command,
    serve_command,
)


def parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands and their options."""
    top = Parser(
        prog="headrace",
        description="A drop-in PyTorch DataLoader for images.",
        epilog="headrace COMMAND --help prints the options of a command, and examples.",
    )
    top.add_argument("--version", action="version", version=f"headrace {__version__}")
    shell_completion.add_completion_option(top)
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status; without a command, prints the help."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # names of files may hold what the terminal cannot show
    top = parser()
    args, unknown = top.parse_known_args(arguments)
    if unknown:  # with the usage of the command that does not know them
        getattr(args, "command_parser", top).error(f"unrecognized arguments: {' '.join(unknown)}")
    if args.command is None:
        top.print_help()
        return 0
    try:
        import headrace._base.native  # noqa: F401
    except (ImportError, ValueError) as error:  # the module is missing, or rejects HEADRACE_ISA
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    try:
        status: int = args.run(args)
    except inputs.GivenError as error:
        print(f"headrace {args.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nheadrace: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
