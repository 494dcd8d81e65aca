"""``headrace serve``: makes samples for the loaders of other machines."""

from __future__ import annotations

import argparse
import ipaddress
import signal
import sys

from headrace._cli import inputs

PORT = 9917


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    what = "make samples for loaders on other machines"
    about = (
        "Make samples for loaders on other machines: DataLoader(..., helpers=['this-machine:9917']). Loaders send the "
        "files with their requests; those of the dataset that is named here are read here."
    )
    examples = ["serve", "serve --host 0.0.0.0 --threads 16", "serve /data/imagenet/train"]
    parser = inputs.add_command(commands, "serve", what, examples, description=about)
    parser.add_argument("dataset", nargs="?", help=f"what loaders have, too: {inputs.DATASET}")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen at; default: 127.0.0.1, which only this machine reaches"
    )
    parser.add_argument("--port", type=_port, default=PORT, help=f"default: {PORT}; 0: a free one, which is printed")
    parser.add_argument("--threads", type=inputs.count, metavar="N", help="default: one for each core")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serves until SIGINT or SIGTERM.

    Returns:
        The exit status: 0 it was ended, 2 it cannot listen there.
    """
    from headrace._base.cores import usable_cores
    from headrace._helpers.connection import TOKEN, Address, token_here
    from headrace._helpers.server import HelperServer
    from headrace.datasets.sources import NotNative, as_source

    try:
        token = token_here()
    except ValueError as error:
        raise inputs.GivenError(str(error)) from None
    if not token and not _is_loopback(args.host):
        raise inputs.GivenError(
            f"--host {args.host} is reached from other machines: set the variable {TOKEN} to a secret, here and where "
            "the loaders run"
        )
    threads = args.threads or usable_cores()
    try:
        dataset = None if args.dataset is None else as_source(inputs.dataset_of(args.dataset))
    except NotNative as error:
        raise inputs.GivenError(f"{args.dataset}: {error}") from None
    try:
        server = HelperServer((args.host, args.port), threads, token, dataset)
    except OSError as error:
        raise inputs.GivenError(f"cannot listen at {args.host}:{args.port}: {error.strerror or error}") from None
    where = Address(args.host, server.server_address[1])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        print(f"{threads} threads make samples for loaders at {where}", flush=True)
        server.serve_forever()
    except KeyboardInterrupt:
        print(file=sys.stderr)
    finally:
        server.server_close()
    print(f"{server.samples:,} samples were made")
    return 0


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text} is not a port: 0 to 65535")
    return int(text)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
