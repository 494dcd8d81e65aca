#!/usr/bin/env bash
# Makes sure that the system packages which headrace builds with are there: installs them when root, else prints the command.
# Usage: tools/system_packages.sh PYTHON [tests|browser|video]
set -euo pipefail
python=$1
wanted=${2:-}
missing=()

compiles() { printf '%s\n' "$@" | c++ -std=c++20 -x c++ -E - >/dev/null 2>&1; }

command -v c++ >/dev/null 2>&1 || missing+=(g++)
command -v make >/dev/null 2>&1 || missing+=(make)
compiles '#include <cstddef>' '#include <cstdio>' '#include <jpeglib.h>' || missing+=(libjpeg62-turbo-dev)
compiles '#include <libdeflate.h>' || missing+=(libdeflate-dev)
"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3-venv)
"$python" -c 'import sysconfig, pathlib, sys; sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())' \
  >/dev/null 2>&1 || missing+=(python3-dev)
if [ "$wanted" = tests ]; then
  command -v cmake >/dev/null 2>&1 || missing+=(cmake)
  compiles '#include <doctest/doctest.h>' || missing+=(doctest-dev)
fi

# torchcodec's tests read videos that ffmpeg makes, with its libraries.
if [ "$wanted" = video ]; then
  command -v ffmpeg >/dev/null 2>&1 || missing+=(ffmpeg)
fi
if [ "$wanted" = browser ]; then
  command -v chromium >/dev/null 2>&1 || missing+=(chromium)
  command -v chromedriver >/dev/null 2>&1 || missing+=(chromium-driver)
fi

[ ${#missing[@]} -eq 0 ] && exit 0
if ! command -v apt-get >/dev/null 2>&1; then
  echo "headrace needs these Debian packages or their like on your system: ${missing[*]}" >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "headrace needs system packages; please run: sudo apt-get install -y ${missing[*]}" >&2
  exit 1
fi
echo "installing system packages: ${missing[*]}"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
