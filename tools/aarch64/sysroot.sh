#!/usr/bin/env bash
# Makes what a cross build needs, on Debian: the cross compiler and qemu-user (installed when root), and in FOLDER packages
# for arm64: libjpeg-turbo, libdeflate and doctest for the preset aarch64, or those that are named, with all that they depend on. apt
# gets lists and a cache of its own there, so the system keeps its architectures.
# Usage: tools/aarch64/sysroot.sh FOLDER [PACKAGE...]. Exits with 77 and one sentence where this machine cannot have it.
set -euo pipefail
folder=$1
shift

cannot() {
  echo "aarch64 is left out: $1" >&2
  exit 77
}

missing=()
command -v aarch64-linux-gnu-g++ >/dev/null || missing+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
[ ${#missing[@]} -eq 0 ] && [ -f "$folder/done" ] && exit 0
grep -qsE '^ID=debian' /etc/os-release && command -v apt-get >/dev/null || cannot "this is not Debian"
if [ ${#missing[@]} -ne 0 ]; then
  [ "$(id -u)" -eq 0 ] || cannot "please run: sudo apt-get install -y ${missing[*]}"
  echo "installing system packages: ${missing[*]}"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    cannot "apt-get found no ${missing[*]}"
fi

rm -rf "$folder"
mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial"
folder=$(cd "$folder" && pwd)
cat >"$folder/apt/conf" <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Dir::State "$folder/apt";
Dir::State::status "/dev/null";
Dir::Cache "$folder/apt/cache";
EOF
export APT_CONFIG=$folder/apt/conf
if [ $# -gt 0 ]; then
  get=(apt-get install -qq -y --download-only --no-install-recommends -o "Dir::Cache::archives=$folder/apt/" "$@")
  mkdir -p "$folder/apt/partial"
else
  get=(apt-get download -qq libjpeg62-turbo-dev libdeflate-dev doctest-dev)
fi
apt-get update -qq && (cd "$folder/apt" && "${get[@]}" >/dev/null 2>&1) || cannot "apt-get found no packages of arm64"
for package in "$folder"/apt/*.deb; do dpkg -x "$package" "$folder"; done
[ $# -gt 0 ] || mv "$folder"/usr/include/aarch64-linux-gnu/* "$folder/usr/include"
rm -rf "$folder/apt"
touch "$folder/done"
