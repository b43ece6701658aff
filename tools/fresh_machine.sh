#!/usr/bin/env bash
# Runs `make TARGET` as a fresh machine would: in a clone, with every cache cold, under a PATH that has nothing but rust,
# python3, gcc, make, git and a base system (bash, coreutils, binutils, findutils, grep, sed, awk). Prints the seconds.
#
#     tools/fresh_machine.sh demo
set -euo pipefail
target=${1:?usage: tools/fresh_machine.sh TARGET}
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

rust=(cargo cargo-clippy cargo-fmt clippy-driver rustc rustdoc rustfmt)
named=(gcc cc make git)
base=(
  bash sh
  '[' b2sum base64 basename cat chmod chown cksum comm cp cut date dd df dirname du echo env expand expr false fmt fold
  head id install join link ln ls md5sum mkdir mkfifo mktemp mv nice nl nohup nproc od paste pr printenv printf pwd
  readlink realpath rm rmdir seq sha1sum sha256sum sha512sum sleep sort split stat stdbuf stty sum sync tac tail tee test
  timeout touch tr true truncate tsort tty uname unexpand uniq unlink wc who whoami yes
  addr2line ar as c++filt ld nm objcopy objdump ranlib readelf size strings strip
  find xargs grep egrep fgrep sed awk
)

bin=$scratch/bin
mkdir "$bin" "$scratch/home"
# Tools of rustup's and pyenv's are found behind their shims, which need a home folder to know what to start.
toolchain=$(rustc --print sysroot)/bin
for name in "${rust[@]}"; do ln -s "$toolchain/$name" "$bin/$name"; done
ln -s "$(python3 -c 'import sys; print(sys._base_executable)')" "$bin/python3"
for name in "${named[@]}" "${base[@]}"; do
  found=$(type -P "$name") || { echo "fresh_machine.sh: this machine has no $name" >&2; exit 2; }
  ln -s "$found" "$bin/$name"
done

git clone --quiet "$root" "$scratch/durasim"
environment=(HOME="$scratch/home" PATH="$bin" TERM="${TERM:-dumb}")
# How a machine reaches its registries is no part of what it has installed.
for name in PIP_CERT PIP_INDEX_URL PIP_FIND_LINKS PIP_DEFAULT_TIMEOUT SSL_CERT_FILE CARGO_HTTP_CAINFO HTTPS_PROXY \
  HTTP_PROXY NO_PROXY; do
  if [ -n "${!name:-}" ]; then environment+=("$name=${!name}"); fi
done
begin=$(date +%s)
env -i "${environment[@]}" "$bin/make" --no-print-directory -C "$scratch/durasim" "$target"
echo "$target-cold: $(($(date +%s) - begin)) seconds"
