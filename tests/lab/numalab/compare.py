"""One program, several placements, one table."""
import json
import os
import subprocess
import sys

from numalab import counts, guest, model
from numalab.errors import LabError
from numalab.machine import ROOT

RECORD_PERIOD_NS = '250000'
PLACEMENTS = ('first-touch', 'interleave', 'autonuma', 'numapgo', 'exact')


class Row:
    def __init__(self, placement, machine, counted, tables):
        self.placement = placement
        self.lar = counted.lar('accesses', machine)
        self.memory_lar = counted.lar('memory', machine)
        self.remote_walks, self.known_walks = model.remote_walks(counted, tables)
        self.times = model.modelled(machine, counted, tables)
        self.memory = counted.matrix('memory')
        self.accesses = counted.matrix('accesses')
        self.nr_walks = sum(counted.walks().values())
        self.instructions = sum(c.instructions for c in counted.cpus.values())


class Comparison:
    """@settings: fields of guest.Options that every run has (thp, files, timeout_s, environment)."""

    def __init__(self, machine, command, directory, settings, shapes=()):
        self.machine, self.command, self.directory = machine, command, directory
        self.settings, self.shapes = settings, list(shapes)
        self.numapgo = os.path.join(ROOT, counts.BUILD, 'numapgo')
        self.machine_file = os.path.join(directory, 'machine.json')
        machine.write(self.machine_file)

    def _run(self, command, autonuma='off', pin=True, pages=None, files=(), out=None):
        """Run @command counted. @pages: keep the counts per page in this file."""
        options = guest.Options(self.machine, command, autonuma=autonuma, marks=True, watch=True,
                                capture=True, out=out, **self.settings)
        options.files = options.files + list(files)
        if pin:
            options.pin_threads()
        raw = pages or os.path.join(self.directory, 'counts')
        options.plugin = counts.plugin_option(self.machine, raw, pages=pages is not None,
                                              shapes=self.shapes)
        result = guest.run(options)
        if result.status:
            raise LabError('%s: status %d in the guest: %s' % (
                ' '.join(command), result.status, result.stderr.decode(errors='replace')[-500:]), 1)
        return counts.Counts(raw), result

    def _host(self, *words):
        done = subprocess.run(words, cwd=self.directory, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            raise LabError('%s: %s' % (' '.join(words), done.stdout[-500:]), 1)
        return done.stdout

    def _record(self):
        """Record a first-touch run in the guest, once, while the plugin counts its pages: that also
        makes the emulated CPUs slower and so the clock samples of a short program more."""
        pages = os.path.join(self.directory, 'pages')
        if not os.path.exists(pages):
            self._run([self.numapgo, 'record', '-q', '-s', 'clock,fault,hint', '--period', RECORD_PERIOD_NS, '-o', 'run.db',
                       '--'] + self.command, pages=pages, out=self.directory)
        return pages

    def _replay(self, database):
        self._host(self.numapgo, 'analyze', '-q', '-m', self.machine_file, '-o', 'numapgo.plan',
                   database)
        plan = os.path.join(self.directory, 'numapgo.plan')
        return self._run([self.numapgo, 'replay', '-q', '--plan', 'numapgo.plan', '--'] +
                         self.command, pin=False, files=[plan])

    def run(self, placement):
        if placement == 'first-touch':
            counted, result = self._run(self.command)
        elif placement == 'interleave':
            tool = counts.tool('interleave')
            counted, result = self._run([tool] + self.command)
        elif placement == 'autonuma':
            counted, result = self._run(self.command, autonuma='on')
        elif placement == 'numapgo':
            self._record()
            counted, result = self._replay('run.db')
        elif placement == 'exact':
            pages = self._record()
            self._host(self.numapgo, 'import', '-q', '--with', 'run.db', '-o', 'exact.db', pages)
            counted, result = self._replay('exact.db')
        else:
            raise LabError("no placement '%s'; there are: %s" %
                           (placement, ' '.join(PLACEMENTS)), 2)
        tables = model.tables_of(counted, result.snapshots)
        return Row(placement, self.machine, counted, tables)


def percent(value):
    return '-' if value is None else '%.1f' % (100 * value)


def print_table(machine, command, rows):
    print('%s on %s: %s' % (' '.join(command), machine.name, machine.description))
    head = '%-13s%10s%10s%12s%12s%12s%8s'
    print(head % ('', 'all', 'memory', 'page walks', 'walks with', 'modelled', 'ratio'))
    print(head % ('placement', 'local %', 'local %', 'remote %', 'table %', 'time ms', ''))
    for row in rows:
        print('%-13s%10s%10s%12s%12s%12.1f%8.2f' % (
            row.placement, percent(row.lar), percent(row.memory_lar), percent(row.remote_walks),
            percent(row.known_walks), row.times.ns / 1e6, row.times.ns / rows[0].times.ns))
    print('(accesses and page tables are counted; memory accesses and page walks are of cache and '
          'TLB models;\n the time is of a model, see tests/lab/README.md; ratio to %s)' %
          rows[0].placement)


def as_json(machine, command, rows):
    def matrix(m):
        return [[m.get((a, b), 0) for b in range(machine.nr_nodes)]
                for a in range(machine.nr_nodes)]
    return json.dumps({
        'schema': 'numapgo.lab-compare/1', 'machine': machine.name, 'command': command,
        'placements': [{
            'name': r.placement, 'local_share': r.lar, 'memory_local_share': r.memory_lar,
            'remote_walk_share': r.remote_walks, 'known_walk_share': r.known_walks,
            'modelled_ns': r.times.ns, 'modelled_memory_ns': r.times.memory_ns,
            'modelled_walk_ns': r.times.walk_ns, 'accesses': matrix(r.accesses),
            'memory_accesses': matrix(r.memory), 'page_walks': r.nr_walks,
            'instructions': r.instructions} for r in rows]}, indent=1)


def compare(machine, command, placements, directory, settings, shapes=()):
    comparison = Comparison(machine, command, directory, settings, shapes)
    rows = []
    for placement in placements:
        if sys.stderr.isatty():
            print('lab: %s ...' % placement, file=sys.stderr)
        rows.append(comparison.run(placement))
    return rows
