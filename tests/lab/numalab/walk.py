"""Where page-table pages are: the guest's page tables read from outside, in the stopped machine.

The guest's memory is in memfds of QEMU that are open for reading here as /proc/PID/fd/N; the root
of a process's tables is CR3 of a CPU that runs it. Kernels are booted without a fifth level and
without separate user tables (guest.py), so there are four levels of 512 entries of 8 bytes."""
import os
import re
import struct
import time

from numalab.errors import LabError

PRESENT, HUGE = 1, 1 << 7
FRAME = 0x000ffffffffff000
USER_ENTRIES = 256                      # of the root: the lower half


class Memory:
    """Guest physical memory, each node's in its own file, in the order of the nodes."""

    def __init__(self, machine, pid):
        self.machine = machine
        files = []
        for fd in sorted(map(int, os.listdir('/proc/%d/fd' % pid))):
            path = '/proc/%d/fd/%d' % (pid, fd)
            if 'memory-backend-memfd' in os.readlink(path):
                files.append(os.open(path, os.O_RDONLY))
        nodes = [n for n in range(machine.nr_nodes) if machine.memory_mib[n]]
        if len(files) != len(nodes):
            raise LabError('%d memory files of QEMU found, %d expected' % (len(files), len(nodes)))
        self.file_of = dict(zip(nodes, files))

    def read(self, address, size):
        node, offset = self.machine.node_of_physical(address)
        return os.pread(self.file_of[node], size, offset) if node is not None else b''

    def entries(self, table):
        data = self.read(table, 4096)
        return struct.unpack('<512Q', data) if len(data) == 4096 else (0,) * 512

    def node(self, address):
        return self.machine.node_of_physical(address)[0]

    def close(self):
        for fd in self.file_of.values():
            os.close(fd)


def read_tables(memory, root):
    """{address of 2 MiB region: {'tables': nodes of the root, second, third and leaf table,
    'data': {node: present 4 KiB pages}}}; a 2 MiB page has no leaf table."""
    regions = {}
    for i4, e4 in enumerate(memory.entries(root)[:USER_ENTRIES]):
        for i3, e3 in enumerate(memory.entries(e4 & FRAME)) if e4 & PRESENT else ():
            for i2, e2 in enumerate(memory.entries(e3 & FRAME)) if e3 & PRESENT else ():
                if not e2 & PRESENT:
                    continue
                path = [memory.node(t & FRAME) for t in (root, e4, e3)]
                if e2 & HUGE:
                    data = {memory.node(e2 & FRAME & ~0x1fffff): 512}
                else:
                    path.append(memory.node(e2 & FRAME))
                    data = _leaf(memory, e2 & FRAME)
                regions[i4 << 39 | i3 << 30 | i2 << 21] = {'tables': path, 'data': data}
    return regions


def _leaf(memory, table):
    data = {}
    for entry in memory.entries(table):
        if entry & PRESENT:
            node = memory.node(entry & FRAME)
            data[node] = data.get(node, 0) + 1
    return data


def translate(memory, root, address):
    """Physical address, or None."""
    table = root
    for shift in (39, 30, 21, 12):
        data = memory.read(table + (address >> shift & 511) * 8, 8)
        entry = struct.unpack('<Q', data)[0] if len(data) == 8 else 0
        if not entry & PRESENT:
            return None
        if shift == 12 or entry & HUGE and shift < 39:
            low = (1 << shift) - 1
            return (entry & FRAME & ~low) | (address & low)
        table = entry & FRAME
    return None


class Walker:
    def __init__(self, machine, monitor, qemu_pid):
        self.monitor = monitor
        self.memory = Memory(machine, qemu_pid)

    def _roots(self):
        """CR3 of all CPUs (without flags) that run something in user mode."""
        text = self.monitor.human('info registers -a')
        roots = set()
        for block in re.split(r'CPU#\d+', text)[1:]:
            cr3, cpl = re.search(r'CR3=([0-9a-f]+)', block), re.search(r'CPL=(\d)', block)
            if cr3 and cpl and cpl.group(1) == '3':
                roots.add(int(cr3.group(1), 16) & FRAME)
        return roots

    def find(self, address, cookie, timeout_s=30):
        """Tables of the process that has the 8-byte @cookie at @address and is running now."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            self.monitor.ask('stop')
            try:
                for root in self._roots():
                    place = translate(self.memory, root, address)
                    if place is not None and \
                            self.memory.read(place, 8) == struct.pack('<Q', cookie):
                        return read_tables(self.memory, root)
            finally:
                self.monitor.ask('cont')
            time.sleep(0.01)
        raise LabError('page-table walk: no CPU was seen in the process that asked for it')

    def snapshot(self):
        """{root: tables} of the processes that run in user mode now."""
        self.monitor.ask('stop')
        try:
            return {root: read_tables(self.memory, root) for root in self._roots()}
        finally:
            self.monitor.ask('cont')

    def close(self):
        self.memory.close()
