#!/bin/sh
# Install the Debian packages of tests/packages.txt that are missing, and only those.
# usage: deps.sh [GROUP...]     groups of that file; default: build test
# Without root or apt-get, print the line that would, and fail.
set -u
cd "$(dirname "$0")" || exit 1

packages=$(awk -v groups=" ${*:-build test} " 'index(groups, " " $1 " ") { print $2 }' packages.txt)

is_installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if ! command -v dpkg-query >/dev/null; then
	echo "deps: not a Debian system; needed are, under Debian's names:" \
		$packages >&2
	exit 0
fi
missing=
for package in $packages; do
	is_installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "deps: missing packages; as root run:" >&2
	echo "  apt-get update && $install" >&2
	exit 1
fi
echo "deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
# the services that come with packages must not start here
policy=/usr/sbin/policy-rc.d
[ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy && ours=1; }
$install >/dev/null 2>&1 || { apt-get update && $install; }
status=$?
[ -z "${ours:-}" ] || rm -f $policy
exit $status
