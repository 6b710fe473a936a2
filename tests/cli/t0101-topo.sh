#!/bin/sh
# topo: this machine, every machine file, recorded topologies, synthetic descriptions, bad input.
. "$(dirname "$0")/lib.sh"

# usage: json EXPRESSION COMMAND...: python's EXPRESSION holds for the JSON "t" that COMMAND prints
json()
{
	expression=$1
	shift
	"$@" >"$tmp/json" || return 1
	python3 -c "import json, sys; t = json.load(open(sys.argv[1])); assert $expression, t" "$tmp/json"
}

ok 'this machine has a node with CPU 0' says '^ +0 .* 0' "$NUMAPGO" topo
ok 'this machine as JSON' json 'sum(n["nr_cpus"] for n in t["nodes"]) > 0' "$NUMAPGO" topo --json

for file in datasets/machines/*.json; do
	name=$(basename "$file" .json)
	ok "machine $name is printed" says "^$name: " "$NUMAPGO" topo --machine "$name"
	ok "machine $name as JSON" json "t['name'] == '$name' and t['latency_ns']" \
		"$NUMAPGO" topo --json --machine "$name"
done
ok 'a path works as a name does' says '4 nodes' "$NUMAPGO" topo -m datasets/machines/4-nodes.json

for file in datasets/topologies/*.v[12].xml datasets/topologies/memaxes*.xml; do
	ok "$(basename "$file") is read" says 'fingerprint' "$NUMAPGO" topo --machine "$file"
done
ok 'XML of hwloc 3 is refused with a way out' says 'export-xml-flags' \
	status 1 "$NUMAPGO" topo --machine datasets/topologies/8intel64-4n2t-memattrs.xml
ok 'a synthetic description' json 'len(t["nodes"]) == 32 and t["latency_ns"] is None' \
	"$NUMAPGO" topo --json --machine 'numa:32 core:2 pu:2'
ok '32 nodes fit' says '^ +31 +4 ' "$NUMAPGO" topo --machine 'numa:32 core:2 pu:2'
ok 'a node without CPUs has no row' json 't["latency_ns"][4] == [None] * 5' \
	"$NUMAPGO" topo --json --machine 4-nodes-cxl

ok 'an unknown name lists the known ones' says '4-nodes-cxl' \
	status 1 "$NUMAPGO" topo --machine nothing-like-it
ok 'a bad description says so' says 'synthetic' status 1 "$NUMAPGO" topo --machine 'numa:many'
ok 'a directory is refused' status 1 "$NUMAPGO" topo --machine "$tmp/"
printf '{"format":"numapgo-machine",\n"version":1' >"$tmp/cut.json"
ok 'a cut file is refused with its place' says 'cut.json: line 2' \
	status 1 "$NUMAPGO" topo --machine "$tmp/cut.json"
sed 's/"cpus": "7-13"/"cpus": "6-13"/' datasets/machines/4-nodes.json >"$tmp/twice.json"
ok 'a CPU in two nodes is refused' says 'nodes\[1\]: CPU 6 is in node 0' \
	status 1 "$NUMAPGO" topo --machine "$tmp/twice.json"
head -c 3000 /dev/urandom >"$tmp/random"
ok 'random bytes are refused' status 1 "$NUMAPGO" topo --machine "$tmp/random"
ok 'operands are a usage error' status 2 "$NUMAPGO" topo 4-nodes
HWLOC_XMLFILE=datasets/topologies/memaxes-snb-2s-v1.xml "$NUMAPGO" topo >"$tmp/with" 2>&1
"$NUMAPGO" topo >"$tmp/without" 2>&1
# free memory moves, the shape does not
ok "hwloc's variables do not replace this machine" \
	[ "$(sed -n 2p "$tmp/with")" = "$(sed -n 2p "$tmp/without")" ]
finish
