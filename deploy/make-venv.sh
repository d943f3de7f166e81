#!/bin/sh
# Makes .venv with what the named requirements file lists, and does nothing while that file has not changed.
#   deploy/make-venv.sh requirements.txt
set -eu
cd "$(dirname "$0")/.."
requirements=$1
stamp=.venv/installed-$requirements
wanted=$(cksum <"$requirements")

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && .venv/bin/python -c '' 2>/dev/null; then
    exit 0
fi
if ! .venv/bin/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
    python=$(sh deploy/find-python.sh)
    echo "Making .venv with $python"
    "$python" -m venv --clear .venv
fi
echo "Installing $requirements"
.venv/bin/python -m pip install --quiet --quiet --disable-pip-version-check --require-hashes --requirement "$requirements" || {
    echo "Installing $requirements failed, see above: pip needs to reach its package index (pip config, PIP_INDEX_URL)" >&2
    exit 1
}
echo "$wanted" >"$stamp"
if [ "$requirements" = requirements-dev.txt ]; then
    # It contains everything that the other file lists, in the same versions.
    cksum <requirements.txt >.venv/installed-requirements.txt
fi
