#!/usr/bin/python3
"""Make a plan from a recording without analyzing it, so that tests decide what goes where.

usage: make_plan.py DB PLAN NODES [KIND:MIB=DATA/TABLES...]

KIND:MIB selects objects, as heap:64; DATA is a list of nodes, an equal part of the pages for each;
TABLES likewise for page-table pages. "@" instead of DATA/TABLES: the n-th allocation of each thread
goes to the node of the thread's number. Without a selection everything goes somewhere: parts,
interleaved, weighted, told apart by all kinds of ordinals in turn.
"""
import json
import re
import sqlite3
import sys

PAGE, REGION = 4096, 2 << 20


def parts(total, nodes, key):
    ranges, first = [], 0
    for i, node in enumerate(nodes):
        end = total * (i + 1) // len(nodes)
        if end > first:
            ranges.append({key: [first, end - first], 'node': node})
        first = end
    return ranges


def anything(row, size, nr_nodes, entry):
    node, pages = row % nr_nodes, -(-size // PAGE)
    which = ('all', 'site_ordinal', 'thread_ordinal')[row % 3]
    if row % 4 == 0:
        entry['ranges'] = parts(pages, [node, (node + 1) % nr_nodes], 'pages')
    elif row % 4 == 1:
        entry['ranges'] = [{'pages': [0, pages], 'interleave': list(range(nr_nodes))}]
        if row % 8 == 1:
            entry['ranges'][0]['weights'] = [3] + [1] * (nr_nodes - 1)
    else:
        entry['ranges'] = parts(pages, [node], 'pages')
    entry['tables'] = parts(-(-size // REGION), [(node + 1) % nr_nodes], 'regions')
    return which


def selected(spec, size, creator, entry):
    if spec == '@':
        node = int(creator.split('.')[-1])
        data, tables, which = [node], [node], 'thread_ordinal'
    else:
        data, tables = ([int(n) for n in part.split(',') if n] for part in spec.split('/'))
        which = 'all'
    entry['ranges'] = parts(-(-size // PAGE), data, 'pages')
    if tables:
        entry['tables'] = parts(-(-size // REGION), tables, 'regions')
    return which


class Recording:
    def __init__(self, path):
        self.db = sqlite3.connect('file:%s?mode=ro' % path, uri=True)
        self.modules = self.rows('SELECT id, path, build_id FROM v_module ORDER BY id')
        self.index = {m[0]: i for i, m in enumerate(self.modules)}

    def rows(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def module(self, path):
        found = [m for m in self.modules if m[1] == path]
        return self.described(found[0]) if found else {'path': path or ''}

    @staticmethod
    def described(module):
        return {'path': module[1], **({'build_id': module[2]} if module[2] else {})}

    def frames(self, callsite):
        return [{**({'module': self.index[m]} if m is not None else {}), 'offset_bytes': offset}
                for m, offset in self.rows(
                    'SELECT f.module_id, f.offset_bytes FROM callsite_frame c JOIN frame f '
                    'ON f.id = c.frame_id WHERE c.callsite_id = ? ORDER BY position', callsite)]


def plan_objects(recording, nr_nodes, specs):
    seen = set()
    for row in recording.rows(
            'SELECT o.id, o.kind, s.text, o.module_id, o.offset_bytes, o.callsite_id, '
            'o.site_ordinal, o.thread_ordinal, t.path, o.size_bytes FROM object o '
            'LEFT JOIN string s ON s.id = o.name_id LEFT JOIN thread t ON t.id = o.thread_id '
            "WHERE o.kind IN ('heap', 'mmap', 'static', 'shared') AND o.size_bytes > 0 "
            'ORDER BY o.id'):
        number, kind, name, module, offset, callsite, at_site, by_thread, creator, size = row
        spec = specs.get('%s:%d' % (kind, size >> 20))
        if specs and (spec is None or (kind == 'static' and not name)):
            continue
        entry = {'kind': kind, 'size_bytes': size, 'share': 0.01, 'confidence': 0.5}
        which = selected(spec, size, creator, entry) if specs else \
            anything(number, size, nr_nodes, entry)
        if name:
            entry['name'] = name
        if kind == 'static':
            if module is None:
                continue
            entry.update(module=recording.index[module], offset_bytes=offset)
            which = 'all'
        else:
            entry['frames'] = recording.frames(callsite)
            if not entry['frames']:
                continue
        if which == 'thread_ordinal' and not creator:
            which = 'all'
        if which != 'all':
            entry.update(which=which, ordinal=at_site if which == 'site_ordinal' else by_thread)
        if which == 'thread_ordinal':
            entry['creator'] = creator
        key = (kind, module, offset, callsite, which, entry.get('ordinal'), entry.get('creator'))
        if key not in seen:
            seen.add(key)
            yield entry


def main(database, path, nr_nodes, *specs):
    recording, nr_nodes = Recording(database), int(nr_nodes)
    executable = recording.rows('SELECT exe FROM v_process ORDER BY id LIMIT 1')[0][0]
    threads = sorted({p for p, in recording.rows('SELECT path FROM thread')
                      if re.fullmatch(r'0(\.[0-9]+)*', p)})
    plan = {
        'format': 'numapgo-plan', 'version': 1, 'min_object_bytes': 16384,
        'program': recording.module(executable),
        'machine': {
            'page_size_bytes': PAGE,
            'nodes': [{'memory_bytes': 512 << 20, 'nr_cpus': 2}] * nr_nodes,
            'distance_ns': [[80.0 if i == j else 140.0 for j in range(nr_nodes)]
                            for i in range(nr_nodes)]},
        'modules': [recording.described(m) for m in recording.modules],
        'threads': [{'path': p, 'node': int(p.split('.')[-1]) % nr_nodes} for p in threads],
        'objects': list(plan_objects(recording, nr_nodes,
                                     dict(s.split('=', 1) for s in specs)))}
    with open(path, 'w', encoding='utf-8') as out:
        json.dump(plan, out, indent=1)


if __name__ == '__main__':
    main(*sys.argv[1:])
