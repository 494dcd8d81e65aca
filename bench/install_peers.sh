#!/usr/bin/env bash
# Installs the peers of the benchmark into the virtual environment $VENV, which is made if it does not exist.
#
#   VENV=.venv-bench bench/install_peers.sh
#
# FFCV is built from source with the system's OpenCV and libjpeg-turbo, the ceiling with libjpeg-turbo only. Root
# installs the system packages; for other users the script prints the command. A peer that cannot be installed is
# reported and left out: the benchmark then lists it as not installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$(realpath -sm "${VENV:-.venv-bench}")
packages=(g++ pkg-config libjpeg-dev libturbojpeg0-dev libopencv-dev)

[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }

if command -v apt-get >/dev/null; then
  if dpkg -s "${packages[@]}" >/dev/null 2>&1; then
    :
  elif [ "$(id -u)" = 0 ]; then
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}"
  else
    echo "not root; for FFCV and the ceiling run: sudo apt-get install --no-install-recommends ${packages[*]}"
  fi
else
  echo "no apt-get here; FFCV needs the headers of OpenCV and libturbojpeg, the ceiling those of libjpeg-turbo"
fi

pip install -r "$here/requirements.txt"
while read -r requirement; do
  pip install --no-deps "$requirement" || echo "left out: $requirement could not be installed"
done < <(grep -v '^#' "$here/requirements-nodeps.txt")

cd "$here/.."
for contender in torch opencv dali turboloader ffcv ceiling; do
  "$venv/bin/python" -m "bench.contenders.$contender" --probe
done
