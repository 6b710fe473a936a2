"""The counting plugin: its options, and what it counted."""
import os
import subprocess

from numalab.errors import LabError
from numalab.machine import ROOT

BUILD = os.environ.get('B', 'build')
REGION = 1 << 21


def tool(name):
    """Path of a file that 'make lab-tools' builds, built if it is not there."""
    path = os.path.join(ROOT, BUILD, 'lab', name)
    if not os.path.exists(path):
        made = subprocess.run(['make', '-s', '-C', ROOT, 'B=' + BUILD, 'lab-tools'],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if made.returncode or not os.path.exists(path):
            raise LabError("'make lab-tools' does not build %s: %s" % (path, made.stdout[-500:]))
    return path


def plugin_option(machine, out, pages=False, caches=True, trace=None, period=1000, shapes=()):
    """QEMU's -plugin for a machine. @shapes: 'l1=512/8' and the like."""
    node_of = [str(machine.node_of_cpu(c)) for c in range(machine.nr_cpus)]
    words = [tool('numalab.so'), 'out=' + out, 'cpus=' + '/'.join(node_of),
             'memory=' + '/'.join('%x-%x' % r for r in machine.memory_ranges()),
             'latency=' + '/'.join(':'.join('%g' % machine.cost_ns(a, b)
                                            for b in range(machine.nr_nodes))
                                   for a in range(machine.nr_nodes))]
    words += ['caches=on'] * caches + ['pages=on'] * pages + list(shapes)
    if trace:
        words += ['trace=' + trace, 'period=%d' % period]
    return ','.join(w.replace(',', ',,') for w in words)


class Cpu:
    def __init__(self, node, fields):
        self.node = node
        (self.instructions, self.l1_hits, self.l2_hits, self.llc_hits, self.dtlb_misses,
         self.walks, self.elsewhere) = fields
        self.accesses, self.memory = {}, {}      # memory node: [loads, stores]
        self.region_walks = {}                   # address of the 2 MiB region: walks
        self.pages = {}                          # address: (node, loads, stores, memory loads, ...)


class Counts:
    """.cpus: number of the vCPU to Cpu."""

    def __init__(self, path):
        self.cpus = {}
        try:
            with open(path) as f:
                if f.readline() != 'numalab-counts 1\n':
                    raise LabError('%s: not a file of counts' % path)
                for line in f:
                    self._take(line.split())
        except FileNotFoundError:
            raise LabError('the plugin left no counts (QEMU was killed?)')

    def _take(self, words):
        kind, cpu = words[0], int(words[1])
        if kind == 'cpu':
            self.cpus[cpu] = Cpu(int(words[2]), [int(w) for w in words[3:]])
        elif kind == 'access':
            numbers = [int(w) for w in words[3:]]
            self.cpus[cpu].accesses[int(words[2])] = numbers[:2]
            self.cpus[cpu].memory[int(words[2])] = numbers[2:]
        elif kind == 'walks':
            self.cpus[cpu].region_walks[int(words[2], 16)] = int(words[3])
        elif kind == 'page':
            self.cpus[cpu].pages[int(words[2], 16)] = tuple(int(w) for w in words[3:])

    def matrix(self, what):
        """{(CPU's node, memory's node): loads + stores}; what: 'accesses' or 'memory'."""
        total = {}
        for cpu in self.cpus.values():
            for node, numbers in getattr(cpu, what).items():
                key = (cpu.node, node)
                total[key] = total.get(key, 0) + sum(numbers)
        return total

    def lar(self, what, machine=None):
        """Share of accesses to the CPU's own node, None without accesses. A CPU whose node has no
        memory cannot be local: its nearest node with memory counts when the machine is given."""
        matrix = self.matrix(what)
        total = sum(matrix.values())
        if not total:
            return None
        home = {cpu.node: cpu.node for cpu in self.cpus.values()}
        if machine:
            with_memory = [n for n in range(machine.nr_nodes) if machine.memory_mib[n]]
            for node in home:
                if not machine.memory_mib[node]:
                    home[node] = min(with_memory, key=lambda n: machine.cost_ns(node, n))
        return sum(v for (cpu_node, node), v in matrix.items() if home[cpu_node] == node) / total

    def walks(self):
        """{(CPU's node, region): page walks}."""
        total = {}
        for cpu in self.cpus.values():
            for region, n in cpu.region_walks.items():
                total[cpu.node, region] = total.get((cpu.node, region), 0) + n
        return total

    def report(self, machine):
        nodes = range(machine.nr_nodes)
        lines = []
        for what, title in (('accesses', 'accesses'), ('memory', 'memory accesses (cache model)')):
            matrix, lar = self.matrix(what), self.lar(what, machine)
            if lar is None:
                continue
            lines.append('%s: %.2f %% local' % (title, 100 * lar))
            lines.append('  CPUs of \\ memory of' + ''.join('%14s' % ('node %d' % n) for n in nodes))
            for a in sorted({cpu.node for cpu in self.cpus.values()}):
                lines.append('  node %-14d' % a +
                             ''.join('%14d' % matrix.get((a, b), 0) for b in nodes))
        lines.append('%-5s%-6s%15s%13s%12s%12s%12s%12s' % (
            'cpu', 'node', 'instructions', 'L1 hits', 'L2 hits', 'LLC hits', 'memory', 'walks'))
        for number, cpu in sorted(self.cpus.items()):
            lines.append('%-5d%-6d%15d%13d%12d%12d%12d%12d' % (
                number, cpu.node, cpu.instructions, cpu.l1_hits, cpu.l2_hits, cpu.llc_hits,
                sum(map(sum, cpu.memory.values())), cpu.walks))
        return '\n'.join(lines)
