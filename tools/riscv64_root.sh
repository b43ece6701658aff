#!/usr/bin/env bash
# Makes a folder with riscv64 packages of a Debian release, for `durasim run --root`. Nothing of this computer changes.
#
#     tools/riscv64_root.sh FOLDER PACKAGE...
#
# The packages and those that they depend on come from the Debian archive that apt of this computer uses, or from the one
# in the environment variable DEBIAN_ARCHIVE. Signatures are checked with Debian's keyring. RELEASE (default: trixie) names the release.
set -euo pipefail

if [ $# -lt 2 ]; then
    echo "usage: tools/riscv64_root.sh FOLDER PACKAGE..." >&2
    exit 2
fi
for command in apt-get dpkg-deb; do
    if ! command -v "$command" > /dev/null; then
        echo "tools/riscv64_root.sh needs $command, which Debian and its relatives have" >&2
        exit 2
    fi
done
release=${RELEASE:-trixie}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
archive=${DEBIAN_ARCHIVE:-$(apt-get indextargets --format '$(REPO_URI)' 'ORIGIN: Debian' | grep -v security | head -n 1)}
if [ -z "$archive" ]; then
    echo "apt of this computer uses no Debian archive: set DEBIAN_ARCHIVE to one" >&2
    exit 2
fi
if [ ! -f "$keyring" ]; then
    echo "$keyring is missing: install debian-archive-keyring" >&2
    exit 2
fi

mkdir -p "$1"
root=$(cd "$1" && pwd)
shift
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$state"/{lists/partial,cache/archives/partial,preferences.d}
: > "$state/status"
echo "deb [arch=riscv64 signed-by=$keyring] $archive $release main" > "$state/sources.list"
options=(
    -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache"
    -o "Dir::Etc::sourcelist=$state/sources.list" -o "Dir::Etc::sourceparts=-"
    -o "Dir::Etc::preferencesparts=$state/preferences.d" -o "Dir::Etc::preferences=-"
    -o APT::Architecture=riscv64 -o APT::Architectures=riscv64 -o APT::Sandbox::User=root -o Debug::NoLocking=1
)
apt-get "${options[@]}" -qq update
apt-get "${options[@]}" -qq -y --no-install-recommends --download-only install "$@"

# Folders of the root are links into /usr, as in every installed Debian.
for folder in bin lib sbin; do
    mkdir -p "$root/usr/$folder"
    [ -e "$root/$folder" ] || ln -s "usr/$folder" "$root/$folder"
done
for package in "$state"/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$root"
done
mkdir -p "$root/tmp"
# Written last and whole: a folder with this file is complete.
(cd "$state/cache/archives" && sha256sum -- *.deb) > "$root/packages.sha256.partial"
mv "$root/packages.sha256.partial" "$root/packages.sha256"
echo "$(ls "$root/usr/bin" | wc -l) programs of $(wc -l < "$root/packages.sha256") packages in $root"
