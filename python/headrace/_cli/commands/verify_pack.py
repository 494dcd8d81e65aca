"""Compares a pack with the source that it was made of."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from headrace._base.cores import usable_cores
from headrace._cli.commands.pack import samples_bar, source_of
from headrace._cli.pack.array_verification import check_raw
from headrace._cli.pack.conversion import RAW
from headrace._cli.pack.manifest import loaded
from headrace._cli.pack.pack_verification import Difference, check
from headrace._cli.pack.tar_contents import contents_of


def run(folder: Path, source: str, workers: int | None, limit: int | None) -> int:
    """Prints how many samples are equal, or the first difference.

    Args:
        folder: the pack.
        source: what `opened` takes.
        workers: number of processes; None: one for each core that this process may use.
        limit: compare only the first samples; None: all.

    Returns:
        The exit status: 0 all are equal, 1 a sample differs, 2 nothing can be compared.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's about single files
            manifest = loaded(folder)
            known = source_of(source)
            processes = workers if workers is not None else usable_cores()
            if manifest.terms.conversion.kind == RAW:
                count = check_raw(known, manifest, folder, workers=processes, limit=limit, bar=samples_bar)
            else:
                contents = contents_of(known)
                count = check(contents, manifest, folder, workers=processes, limit=limit, bar=samples_bar)
    except Difference as error:
        print(f"differs: {error}")
        return 1
    except (ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
        print(f"headrace verify: {error}", file=sys.stderr)
        return 2
    print(f"{count:,} samples compared with {source}: 0 differ")
    return 0
