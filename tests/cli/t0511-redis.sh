#!/bin/sh
# redis-server, filled and then used by redis-benchmark; listens on a socket in its own directory.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/real.sh"

client()
{
	redis-cli -s "$tmp/socket" "$@"
}

program() # OUTPUT-DIRECTORY PREFIX...
{
	directory=$1
	shift
	"$@" redis-server --port 0 --unixsocket "$tmp/socket" --save '' --appendonly no \
		--dir "$tmp" --io-threads 2 --enable-debug-command yes --logfile "$tmp/log" &
	server=$!
	i=0
	until client ping >/dev/null 2>&1 || [ $i = 100 ]; do
		sleep 0.1
		i=$((i + 1))
	done
	client --pipe <"$tmp/commands" >"$directory/filled"
	timeout 300 redis-benchmark -s "$tmp/socket" -q -n 40000 -c 8 -P 16 -t get,incr,lpush,lrange_100 \
		>"$tmp/benchmark" 2>&1 || echo "redis-benchmark did not end"
	client dbsize
	client debug digest
	client shutdown nosave
	wait $server
}
cleanup()
{
	client shutdown nosave >/dev/null 2>&1
}

awk 'BEGIN { for (i = 0; i < 300000; i++) print "SET key:" i " value-" i * 7919 % 1000003 }' \
	>"$tmp/commands"
record_and_replay 'redis-server under redis-benchmark' 300
finish
