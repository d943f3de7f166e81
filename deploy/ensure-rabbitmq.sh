#!/bin/sh
# The tests of publishing to RabbitMQ use the system's server. On a CI machine (CI=true, root, Debian) it is installed;
# elsewhere they are skipped, and a line says so.
set -u
command -v rabbitmq-server >/dev/null 2>&1 && exit 0
[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] && exit 0
if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    # Installed, not started: each test session starts a server of its own. policy-rc.d is how Debian is told so.
    policy=/usr/sbin/policy-rc.d
    [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && made=1; }
    apt-get -qq update && apt-get -qq install --yes --no-install-recommends rabbitmq-server >/dev/null
    [ "${made:-}" = 1 ] && rm -f "$policy"
    command -v rabbitmq-server >/dev/null 2>&1 && exit 0
fi
echo "No RabbitMQ: its tests will be skipped (Debian: apt-get install rabbitmq-server)" >&2
