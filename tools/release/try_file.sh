#!/usr/bin/env bash
# Installs a wheel or a source distribution into a bare environment, as a user does, and runs it from an empty folder:
# import, doctor, demo. A wheel finds no program on the PATH but those of the environment, so no compiler.
# Usage: PYTHON=python3 tools/release/try_file.sh FILE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
file=$(realpath "${1:?a wheel or a source distribution}")
work=$(mktemp -d)
remove=$(command -v rm)  # the PATH changes below
trap '"$remove" -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/env"
python=$work/env/bin/python
"$here/../install_torch.sh" "$python"

cd "$work"
unset PYTHONPATH
case $file in
  *.whl)
    export PATH=$work/env/bin
    for tool in c++ g++ gcc cc clang++ cmake; do
      if command -v $tool >/dev/null; then
        echo "$tool is on the PATH: $PATH" >&2
        exit 1
      fi
    done
    ;;
  *) PATH=$work/env/bin:$PATH ;;
esac
"$python" -m pip install --quiet --disable-pip-version-check "$file"
"$python" -c '
import pathlib, sys, headrace
from headrace import DataLoader, ImageFolder, _core, _gpu, transforms
where = pathlib.Path(headrace.__file__)
assert where.is_relative_to(sys.prefix), where
print(f"headrace {headrace.__version__} in Python {sys.version.split()[0]}: {_core.instruction_set()}, libjpeg-turbo {_core.libjpeg_version()}")
'
headrace doctor
headrace demo --quick
