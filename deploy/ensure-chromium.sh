#!/bin/sh
# Browser tests use the system's Chromium. On a CI machine (CI=true, root, Debian) it is installed; elsewhere a line
# says how, and the tests that need it are skipped.
set -u
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    if apt-get -qq update && apt-get -qq install --yes --no-install-recommends chromium >/dev/null; then
        exit 0
    fi
fi
echo "No Chromium: browser tests will be skipped (Debian: apt-get install chromium)" >&2
