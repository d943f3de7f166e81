#!/bin/sh
# Copies the browser libraries out of their npm packages, with licences and sums. Run it to change a version; the
# result is committed, so that nothing is fetched when the product is built, tested or run.
set -eu

HTMX=4.0.1
AXE=4.14.1

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# unpack NAME VERSION: leaves the package's content in $work/package
unpack() {
    rm -rf "$work/package"
    (cd "$work" && tar -xzf "$(npm pack --silent "$1@$2")")
}

# keep FOLDER FILE...: copies files of the unpacked package, writes FOLDER/SHA256SUMS
keep() {
    folder=$1
    shift
    rm -rf "$folder"
    mkdir -p "$folder"
    for file in "$@"; do cp "$work/package/$file" "$folder/"; done
    (cd "$folder" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
}

unpack htmx.org "$HTMX"
keep "$root/static/vendor/htmx-$HTMX" LICENSE dist/htmx.min.js dist/ext/hx-ptag.min.js

unpack axe-core "$AXE"
keep "$root/tests/vendor/axe-core-$AXE" LICENSE LICENSE-3RD-PARTY.txt axe.min.js
