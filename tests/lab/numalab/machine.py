"""Machine files (datasets/machines/README.md): read, checked, and turned into QEMU options."""
import json
import os

from numalab.errors import LabError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
MACHINES = os.path.join(ROOT, 'datasets', 'machines')
MIB = 1 << 20
MAX_GUEST_CPUS = 8
MAX_GUEST_MIB = 2048


def parse_cpulist(text):
    """'0-3,8' to [0, 1, 2, 3, 8]."""
    cpus = []
    for part in filter(None, text.split(',')):
        first, _, last = part.partition('-')
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


class Machine:
    """Nodes in the file's order: .cpus[i], .memory_mib[i]; matrices are lists of rows or None."""

    def __init__(self, data, origin):
        self.origin = origin
        try:
            if data['format'] != 'numapgo-machine' or data['version'] != 1:
                raise LabError('%s: not a numapgo machine file of version 1' % origin)
            self.name = data['name']
            self.description = data.get('description', '')
            self.source = data.get('source', '')
            self.cpus = [parse_cpulist(n['cpus']) for n in data['nodes']]
            self.memory_mib = [int(n['memory_mib']) for n in data['nodes']]
            self.slit = data['slit']
        except (KeyError, TypeError, ValueError) as e:
            raise LabError('%s: broken machine file: %s %s' % (origin, type(e).__name__, e))
        self.latency_ns = data.get('latency_ns')
        self.bandwidth = data.get('bandwidth_mib_per_s')
        factor = data.get('load_factor') or {}
        self.load_a, self.load_g = factor.get('a', 0.26), factor.get('g', 0.80)
        self.nr_nodes = len(self.cpus)
        self.nr_cpus = sum(len(c) for c in self.cpus)
        self._check(data)

    def _check(self, data):
        if [n.get('node') for n in data['nodes']] != list(range(self.nr_nodes)):
            raise LabError('%s: nodes must be numbered 0, 1, ...' % self.origin)
        if sorted(c for cpus in self.cpus for c in cpus) != list(range(self.nr_cpus)):
            raise LabError('%s: every CPU from 0 on must be on exactly one node' % self.origin)
        for row in self.slit:
            if row is not None and len(row) != self.nr_nodes:
                raise LabError('%s: slit must have %d columns' % (self.origin, self.nr_nodes))

    def shrunk(self):
        """The same shape within what is practical to emulate: fewer CPUs, less memory, in the same
        proportions. Distances, latencies and bandwidths are kept."""
        if self.nr_cpus > MAX_GUEST_CPUS:
            most = max(len(c) for c in self.cpus)
            per_node = max(1, MAX_GUEST_CPUS // sum(1 for c in self.cpus if c))
            first, cpus = 0, []
            for c in self.cpus:
                n = max(1, len(c) * per_node // most) if c else 0
                cpus.append(list(range(first, first + n)))
                first += n
            self.cpus, self.nr_cpus = cpus, first
        total = sum(self.memory_mib)
        if total > MAX_GUEST_MIB:
            self.memory_mib = [max(256, m * MAX_GUEST_MIB // total // 128 * 128) if m else 0
                               for m in self.memory_mib]
        return self

    def spread_cpus(self):
        """All CPUs, one of each node in turn."""
        most = max(len(c) for c in self.cpus)
        return [c[i] for i in range(most) for c in self.cpus if i < len(c)]

    def node_of_cpu(self, cpu):
        return next(i for i, cpus in enumerate(self.cpus) if cpu in cpus)

    def cost_ns(self, cpu_node, memory_node):
        """Idle latency; where it is not known the SLIT with local = 100 ns (an estimate)."""
        if self.latency_ns and self.latency_ns[cpu_node]:
            return float(self.latency_ns[cpu_node][memory_node])
        return 10.0 * self._distance(cpu_node, memory_node)

    def _distance(self, a, b):
        row = self.slit[a]
        if row is None:                      # a node without CPUs: the way back
            row = [r[a] if r else (10 if i == a else 20) for i, r in enumerate(self.slit)]
        return int(row[b])

    def write(self, path):
        """As a machine file: what the guest has, for numapgo analyze."""
        nodes = [{'node': i, 'cpus': ','.join(map(str, self.cpus[i])),
                  'memory_mib': self.memory_mib[i]} for i in range(self.nr_nodes)]
        data = {'format': 'numapgo-machine', 'version': 1, 'name': self.name,
                'description': self.description, 'source': self.source, 'nodes': nodes,
                'slit': self.slit, 'latency_ns': self.latency_ns,
                'bandwidth_mib_per_s': self.bandwidth,
                'load_factor': {'a': self.load_a, 'g': self.load_g}}
        with open(path, 'w') as f:
            json.dump({k: v for k, v in data.items() if v is not None}, f)

    def memory_ranges(self):
        """Per node (first, last + 1) of its memory in the emulator's numbering of RAM, which puts
        each node's block at twice the sum of the blocks before (block offset + place in the
        machine's memory). tests/lab/run-suite.sh checks it for every machine."""
        start, ranges = 0, []
        for mib in self.memory_mib:
            ranges.append((2 * start * MIB, (2 * start + mib) * MIB))
            start += mib
        return ranges

    def node_of_physical(self, address):
        """Node of a guest physical address (q35: what does not fit below the hole goes to 4 GiB)."""
        low = 0x80000000 if sum(self.memory_mib) * MIB >= 0xb0000000 else 0xb0000000
        if address >= 1 << 32:
            address = address - (1 << 32) + low
        node = 0
        for mib in self.memory_mib:
            if address < mib * MIB:
                return node, address
            address -= mib * MIB
            node += 1
        return None, 0

    def qemu_options(self, shared_memory):
        kind = 'memory-backend-memfd,share=on' if shared_memory else 'memory-backend-ram'
        options = ['-m', '%dM' % sum(self.memory_mib)]
        for node, cpus in enumerate(self.cpus):
            numa = 'node,nodeid=%d' % node
            if self.memory_mib[node]:
                options += ['-object', '%s,id=m%d,size=%dM' % (kind, node, self.memory_mib[node])]
                numa += ',memdev=m%d' % node
            options += ['-numa', numa]
        sizes = {len(c) for c in self.cpus if c}
        sockets = sum(1 for c in self.cpus if c) if len(sizes) == 1 else self.nr_cpus
        cores = self.nr_cpus // sockets
        options += ['-smp', '%d,sockets=%d,cores=%d,threads=1' % (self.nr_cpus, sockets, cores)]
        for node, cpus in enumerate(self.cpus):
            for cpu in cpus:
                options += ['-numa', 'cpu,node-id=%d,socket-id=%d,core-id=%d,thread-id=0' %
                            (node, cpu // cores, cpu % cores)]
        for a in range(self.nr_nodes):
            for b in range(self.nr_nodes):
                if a != b:
                    options += ['-numa', 'dist,src=%d,dst=%d,val=%d' % (a, b, self._distance(a, b))]
        return options


def load(what):
    """A machine by name in datasets/machines or by the path of its file."""
    path = what if os.path.isfile(what) else os.path.join(MACHINES, what + '.json')
    try:
        with open(path) as f:
            data = json.load(f)
    except FileNotFoundError:
        raise LabError("no machine '%s'; there are: %s" % (what, ' '.join(names())))
    except (OSError, ValueError) as e:
        raise LabError('%s: cannot read machine file: %s' % (path, e))
    return Machine(data, path).shrunk()


def names():
    if not os.path.isdir(MACHINES):
        return []
    return sorted(f[:-5] for f in os.listdir(MACHINES) if f.endswith('.json'))
