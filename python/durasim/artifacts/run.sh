#!/bin/sh
# Installs durasim from wheels/ into venv/ without network, simulates all points of this artifact again and compares.
# Options are those of `durasim rerun`, such as --jobs 4. An interrupted run continues where it ended.
# Exit code 0: PASS. 1: a result differs. 2 or 4: the artifact or this computer is not as it has to be.
set -eu
cd "$(dirname "$0")"

fail() {
    echo "run.sh: $1" >&2
    exit "$2"
}

sha256sum --check --quiet MANIFEST.sha256 || fail "a file of the artifact is damaged or changed: unpack it again" 2

if ! test -f venv/installed; then
    python=${PYTHON:-}
    for name in python@PYTHON@ python3 python; do
        test -n "$python" || python=$(command -v "$name") || true
    done
    test -n "$python" || fail "Python @PYTHON@ is needed: install it, or name it in the variable PYTHON" 4
    "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (@PYTHON_TUPLE@))' ||
        fail "$python is not Python @PYTHON@, for which the wheels are: name one in the variable PYTHON" 4
    test "$(uname -s) $(uname -m)" = "@SYSTEM@" || fail "the wheels are for @SYSTEM@, and this is $(uname -s) $(uname -m)" 4
    rm -rf venv
    "$python" -m venv venv || fail "$python cannot make a virtual environment: install its module venv" 4
    venv/bin/python -m pip --isolated --disable-pip-version-check --no-cache-dir --quiet install --no-index \
        --find-links wheels --require-hashes --requirement requirements.lock || fail "the wheels cannot be installed" 4
    touch venv/installed
fi
exec venv/bin/durasim rerun . "$@"
