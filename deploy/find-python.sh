#!/bin/sh
# Prints the path of a Python 3.12, 3.13 or 3.14 that can make virtual environments, or one line that says what to do.
# Candidates are executed, not looked at: version managers leave shims on the path that exist and exit with 127.
set -u

usable='import sys; sys.exit(not (sys.implementation.name == "cpython" and (3, 12) <= sys.version_info[:2] <= (3, 14)))'
complete='import ensurepip, ssl, venv'
where='import sys; print(sys.executable)'
without_venv=''

try() {
    [ -x "$1" ] && [ ! -d "$1" ] && "$1" -c "$usable" >/dev/null 2>&1 || return 1
    if "$1" -c "$complete" >/dev/null 2>&1; then
        "$1" -c "$where"
        exit 0
    fi
    without_venv=$1
}

on_path() {
    saved=$IFS
    IFS=:
    for folder in $PATH; do
        IFS=$saved
        try "${folder:-.}/$1"
    done
    IFS=$saved
}

case ${PYTHON:-} in
    */*) try "$PYTHON" ;;
    ?*) on_path "$PYTHON" ;;
esac
for name in python3.13 python3.14 python3.12 python3; do
    on_path "$name"
done
home=${HOME:-/nonexistent}
for version in 3.13 3.14 3.12; do
    for candidate in \
        "${PYENV_ROOT:-$home/.pyenv}"/versions/"$version"*/bin/python3 \
        "${ASDF_DATA_DIR:-$home/.asdf}"/installs/python/"$version"*/bin/python3 \
        "${MISE_DATA_DIR:-$home/.local/share/mise}"/installs/python/"$version"*/bin/python3 \
        "$home"/.local/share/uv/python/cpython-"$version"*/bin/python3 \
        "$home"/.local/bin/python"$version" \
        /opt/homebrew/bin/python"$version" \
        /opt/homebrew/opt/python@"$version"/bin/python"$version" \
        /usr/local/bin/python"$version" \
        /usr/local/opt/python@"$version"/bin/python"$version" \
        /Library/Frameworks/Python.framework/Versions/"$version"/bin/python3; do
        try "$candidate"
    done
done

if [ -n "$without_venv" ]; then
    version=$("$without_venv" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo "$without_venv cannot make virtual environments: install its venv package (Debian: apt-get install python$version-venv)" >&2
else
    echo "No Python 3.12, 3.13 or 3.14 found: install one (Debian: apt-get install python3 python3-venv), or set PYTHON to its path" >&2
fi
exit 1
