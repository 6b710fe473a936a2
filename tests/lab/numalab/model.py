"""Time by a model, from counts. It is a model: it ranks placements, it does not predict seconds.

A thread (vCPU) takes: its instructions at a fixed rate; cache hits and memory accesses at fixed or
the machine file's latencies, memory under load by 1 + a u / (1 - g u) with u the use of the node's
bandwidth, divided by the accesses that a core has under way at once; page walks at
Lcache + f x latency of the leaf table's node. The whole takes as long as its slowest thread, and
at least what the bandwidth of each node and link needs. u depends on the time, so the time is the
fixed point, found by bisection."""

INSTRUCTION_NS = 0.2         # 2.5 GHz, two per cycle
L2_NS, LLC_NS = 4.0, 16.0
PARALLEL_MISSES = 4.0        # memory accesses that one core overlaps
LINE_BYTES = 64
WALK_MEMORY_SHARE = 0.5      # of walks, those whose leaf entry is in no cache (f)
WALK_LEAF_TIME = 0.47        # of a local walk's time, the share that this leaf entry takes


class Times:
    """ns: the whole; walk_ns, memory_ns: of all threads together."""

    def __init__(self, ns, walk_ns, memory_ns):
        self.ns, self.walk_ns, self.memory_ns = ns, walk_ns, memory_ns


def walk_ns(machine, cpu_node, table_node):
    local = machine.cost_ns(cpu_node, cpu_node)
    cached = WALK_MEMORY_SHARE * local * (1 - WALK_LEAF_TIME) / WALK_LEAF_TIME
    return cached + WALK_MEMORY_SHARE * machine.cost_ns(cpu_node, table_node)


def _load_factor(machine, use):
    use = min(use, 1.0)
    return 1 + machine.load_a * use / (1 - machine.load_g * use)


def _walk_time(machine, cpu, table_of):
    total = 0.0
    for region, walks in cpu.region_walks.items():
        table = table_of.get(region, cpu.node)
        total += walks * walk_ns(machine, cpu.node, table)
    return total


def _traffic(counts):
    """Bytes per (CPU's node, memory's node) and per memory's node."""
    links = {k: n * LINE_BYTES for k, n in counts.matrix('memory').items()}
    nodes = {}
    for (_, node), size in links.items():
        nodes[node] = nodes.get(node, 0) + size
    return links, nodes


def modelled(machine, counts, table_of):
    """Times of a run. @table_of: {region: node of its leaf table}; unknown ones count as local."""
    links, nodes = _traffic(counts)

    def bandwidth(cpu_node, node):                       # bytes per ns
        row = machine.bandwidth and machine.bandwidth[cpu_node]
        return row[node] * (1 << 20) / 1e9 if row else None

    def node_bandwidth(node):
        return max(filter(None, (bandwidth(n, node) for n in range(machine.nr_nodes))), default=None)

    walks = {n: _walk_time(machine, c, table_of) for n, c in counts.cpus.items()}

    def parts(time_ns):
        longest, memory_total = 0.0, 0.0
        for number, cpu in counts.cpus.items():
            memory = 0.0
            for node, numbers in cpu.memory.items():
                bw = node_bandwidth(node)
                use = nodes.get(node, 0) / time_ns / bw if bw else 0.0
                memory += (sum(numbers) * machine.cost_ns(cpu.node, node) *
                           _load_factor(machine, use) / PARALLEL_MISSES)
            memory_total += memory
            longest = max(longest, memory + walks[number] + cpu.instructions * INSTRUCTION_NS +
                          cpu.l2_hits * L2_NS + cpu.llc_hits * LLC_NS)
        return longest, memory_total

    least = max([size / node_bandwidth(node) for node, size in nodes.items()
                 if node_bandwidth(node)] +
                [size / bandwidth(*link) for link, size in links.items() if bandwidth(*link)] +
                [1.0])
    low, high = least, max(least, 4 * parts(1e18)[0] + 1, parts(1.0)[0])
    for _ in range(60):
        middle = (low + high) / 2
        if parts(middle)[0] > middle:
            low = middle
        else:
            high = middle
    return Times(high, sum(walks.values()), parts(high)[1])


def remote_walks(counts, table_of):
    """(share of page walks whose leaf table is on another node, share of walks whose table is
    known); None for what there is no walk for."""
    known = remote = total = 0
    for (cpu_node, region), walks in counts.walks().items():
        total += walks
        if region in table_of:
            known += walks
            remote += walks * (table_of[region] != cpu_node)
    return (remote / known if known else None, known / total if total else None)


def tables_of(counts, snapshots):
    """{region: node of its leaf table} of the process that the page walks fit best.
    @snapshots: {root: tables} of all processes seen (walk.py)."""
    walks = {}
    for (_, region), n in counts.walks().items():
        walks[region] = walks.get(region, 0) + n
    best, best_fit = {}, -1
    for tables in snapshots.values():
        leaves = {r: t['tables'][3] for r, t in tables.items() if len(t['tables']) == 4}
        fit = sum(n for region, n in walks.items() if region in leaves)
        if fit > best_fit:
            best, best_fit = leaves, fit
    return best
