-- The recording tables: what numapgo record and import store. Written once, never changed later.
-- Units are in the column names; times are CLOCK_MONOTONIC nanoseconds of the recording machine;
-- addresses are virtual addresses in the recorded process, as signed 64-bit integers.
-- A NULL means "not known", never zero. Every table is always present. schemas/README.md explains
-- each table and column and gives example queries.
--
-- application_id 0x4e504731 is "NPG1"; user_version counts incompatible changes of this file.
PRAGMA application_id = 1313883953;
PRAGMA user_version = 1;

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE string (
    id   INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;

-- one per recorded start of a program (or per imported file)
CREATE TABLE run (
    id              INTEGER PRIMARY KEY,
    command_id      INTEGER REFERENCES string (id),  -- the command line, shell-quoted
    host_id         INTEGER REFERENCES string (id),
    kernel_id       INTEGER REFERENCES string (id),  -- uname -r
    cpu_model_id    INTEGER REFERENCES string (id),
    started_unix_ns INTEGER,
    start_ns        INTEGER,
    end_ns          INTEGER,          -- NULL in an incomplete recording
    exit_status     INTEGER,          -- NULL if killed by a signal or unknown
    exit_signal     INTEGER,
    program_cpu_ns  INTEGER,          -- user + system time of the program and its children
    recorder_cpu_ns INTEGER,          -- the recorder's own
    interrupt_ns    INTEGER           -- estimated time in sampling interrupts
) STRICT;

-- the machine on which it ran
CREATE TABLE machine (
    run_id           INTEGER PRIMARY KEY REFERENCES run (id),
    fingerprint      TEXT NOT NULL,   -- equal for machines of equal shape
    hwloc_xml        TEXT,            -- hwloc's XML export, complete
    page_size_bytes  INTEGER NOT NULL,
    thp_mode         TEXT,            -- always, madvise, never
    numa_balancing   INTEGER          -- kernel.numa_balancing while recording
) STRICT;

CREATE TABLE node (
    run_id       INTEGER NOT NULL REFERENCES run (id),
    node         INTEGER NOT NULL,
    cpus         TEXT NOT NULL,       -- CPU list, "0-3,8"; empty for a node without CPUs
    memory_bytes INTEGER NOT NULL,
    PRIMARY KEY (run_id, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE node_distance (
    run_id            INTEGER NOT NULL REFERENCES run (id),
    cpu_node          INTEGER NOT NULL,
    memory_node       INTEGER NOT NULL,
    slit              INTEGER,
    latency_ns        REAL,
    bandwidth_mib_per_s REAL,
    origin            TEXT,           -- where latency and bandwidth come from
    PRIMARY KEY (run_id, cpu_node, memory_node)
) STRICT, WITHOUT ROWID;

CREATE TABLE cpu (
    run_id INTEGER NOT NULL REFERENCES run (id),
    cpu    INTEGER NOT NULL,
    node   INTEGER NOT NULL,
    core   INTEGER,
    PRIMARY KEY (run_id, cpu)
) STRICT, WITHOUT ROWID;

-- one image of a process: exec starts a new row with the same pid
CREATE TABLE process (
    id          INTEGER PRIMARY KEY,
    run_id      INTEGER NOT NULL REFERENCES run (id),
    pid         INTEGER NOT NULL,
    parent_id   INTEGER REFERENCES process (id),
    exe_id      INTEGER REFERENCES string (id),   -- path of the executable
    comm_id     INTEGER REFERENCES string (id),
    start_ns    INTEGER,
    end_ns      INTEGER,
    agent       TEXT NOT NULL,   -- 'active', or why allocations are unknown: 'static', ...
    nr_agent_lost INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE thread (
    id               INTEGER PRIMARY KEY,
    process_id       INTEGER NOT NULL REFERENCES process (id),
    tid              INTEGER NOT NULL,
    parent_id        INTEGER REFERENCES thread (id),
    path             TEXT NOT NULL,      -- creation path: main '0', its children '0.0', '0.1'
    name_id          INTEGER REFERENCES string (id),
    start_module_id  INTEGER REFERENCES module (id),
    start_offset_bytes INTEGER,          -- start routine, offset as in frame
    start_ns         INTEGER,
    end_ns           INTEGER,
    cpu_ns           INTEGER
) STRICT;

-- an ELF file or other file that was mapped
CREATE TABLE module (
    id       INTEGER PRIMARY KEY,
    path_id  INTEGER NOT NULL REFERENCES string (id),
    build_id TEXT                        -- lower-case hexadecimal
) STRICT;

CREATE TABLE mapping (
    id                INTEGER PRIMARY KEY,
    process_id        INTEGER NOT NULL REFERENCES process (id),
    start_address     INTEGER NOT NULL,
    size_bytes        INTEGER NOT NULL,
    file_offset_bytes INTEGER,
    protection        TEXT,              -- as in /proc/PID/maps: 'r-xp'
    module_id         INTEGER REFERENCES module (id),
    start_ns          INTEGER,
    end_ns            INTEGER
) STRICT;

-- code location: the ELF virtual address, that is address minus load bias
CREATE TABLE frame (
    id           INTEGER PRIMARY KEY,
    module_id    INTEGER REFERENCES module (id),  -- NULL: code outside any file
    offset_bytes INTEGER NOT NULL,
    function_id  INTEGER REFERENCES string (id),
    UNIQUE (module_id, offset_bytes)
) STRICT;

-- an allocation's call stack; position 0 is the caller of malloc, mmap, ...
CREATE TABLE callsite (
    id   INTEGER PRIMARY KEY,
    hash INTEGER NOT NULL                -- of lib/preload/hash.h, as the replayer computes it
) STRICT;

CREATE TABLE callsite_frame (
    callsite_id INTEGER NOT NULL REFERENCES callsite (id),
    position    INTEGER NOT NULL,
    frame_id    INTEGER NOT NULL REFERENCES frame (id),
    PRIMARY KEY (callsite_id, position)
) STRICT, WITHOUT ROWID;

-- what an address belongs to
CREATE TABLE object (
    id            INTEGER PRIMARY KEY,
    process_id    INTEGER NOT NULL REFERENCES process (id),
    kind          TEXT NOT NULL CHECK (kind IN ('static', 'heap', 'mmap', 'file', 'shared',
                                     'stack', 'small-heap', 'anonymous', 'code', 'kernel')),
    name_id       INTEGER REFERENCES string (id),  -- symbol, function of the call site, path
    module_id     INTEGER REFERENCES module (id),  -- static, file, code
    offset_bytes  INTEGER,          -- static: ELF virtual address; file: offset in the file
    callsite_id   INTEGER REFERENCES callsite (id),
    thread_id     INTEGER REFERENCES thread (id),  -- creator; stack: owner
    site_ordinal  INTEGER,          -- n-th allocation at the call site, from 0
    thread_ordinal INTEGER,         -- n-th at (call site, creating thread), from 0
    start_address INTEGER NOT NULL,
    size_bytes    INTEGER NOT NULL,
    start_ns      INTEGER,
    end_ns        INTEGER
) STRICT;

-- allocations below the size threshold, counted per call site
CREATE TABLE small_site (
    process_id  INTEGER NOT NULL REFERENCES process (id),
    callsite_id INTEGER NOT NULL REFERENCES callsite (id),
    nr_objects  INTEGER NOT NULL,
    size_bytes  INTEGER NOT NULL,
    PRIMARY KEY (process_id, callsite_id)
) STRICT, WITHOUT ROWID;

-- where samples come from, asked for or not; what was not to be had says why
CREATE TABLE source (
    id            INTEGER PRIMARY KEY,
    run_id        INTEGER NOT NULL REFERENCES run (id),
    name          TEXT NOT NULL,      -- loads, tlb, clock, hint, fault, ...
    event         TEXT,               -- the exact event and its attributes
    state         TEXT NOT NULL,      -- 'used', 'unavailable', 'not asked'
    reason        TEXT,               -- why it is unavailable
    period        INTEGER,            -- mean events per sample
    period_unit   TEXT,               -- 'ns', 'events', 'cycles', 'operations'
    nr_records    INTEGER NOT NULL DEFAULT 0,  -- everything that the kernel delivered
    nr_samples    INTEGER NOT NULL DEFAULT 0,  -- of these, with an address: rows in sample
    nr_no_operand INTEGER NOT NULL DEFAULT 0,  -- no access in the block is certain
    nr_undecoded  INTEGER NOT NULL DEFAULT 0,  -- code unreadable or not decodable
    nr_unmatched  INTEGER NOT NULL DEFAULT 0,  -- samples whose address is in no object
    nr_lost       INTEGER NOT NULL DEFAULT 0,
    nr_throttled  INTEGER NOT NULL DEFAULT 0,
    UNIQUE (run_id, name)
) STRICT;

-- one address sample; for the source 'fault' one first touch, for 'hint' one hint fault
CREATE TABLE sample (
    time_ns     INTEGER NOT NULL,
    thread_id   INTEGER NOT NULL REFERENCES thread (id),
    source_id   INTEGER NOT NULL REFERENCES source (id),
    cpu         INTEGER,
    access      INTEGER NOT NULL,     -- 0 unknown, 1 read, 2 write, 3 read and write
    address     INTEGER NOT NULL,
    ip          INTEGER,
    object_id   INTEGER REFERENCES object (id),
    weight      INTEGER NOT NULL,     -- events that this sample stands for, in period_unit
    latency_cycles INTEGER,
    data_source INTEGER,              -- PERF_SAMPLE_DATA_SRC, see perf_event.h
    memory_node INTEGER,              -- of the page at that moment, if the source tells
    resolved    INTEGER NOT NULL      -- how the address was found: 0 reported by kernel or
                                      -- hardware, 1 operand of the instruction at the IP,
                                      -- 2, 3 of the nearest one before, behind it in its block
) STRICT;

-- the same, aggregated while recording (record --keep counts); samples or counts, not both
CREATE TABLE page_count (
    epoch      INTEGER NOT NULL,      -- of meta.epoch_ns length
    thread_id  INTEGER NOT NULL REFERENCES thread (id),
    source_id  INTEGER NOT NULL REFERENCES source (id),
    object_id  INTEGER REFERENCES object (id),
    page       INTEGER NOT NULL,      -- address / page size
    nr_reads   INTEGER NOT NULL,
    nr_writes  INTEGER NOT NULL,
    nr_unknown INTEGER NOT NULL,
    weight     INTEGER NOT NULL
) STRICT;

-- gaps in the data: records lost or sampling throttled by the kernel
CREATE TABLE gap (
    source_id INTEGER REFERENCES source (id),
    cpu       INTEGER,
    time_ns   INTEGER,
    kind      TEXT NOT NULL,          -- 'lost', 'throttled', 'agent ring full'
    nr_records INTEGER
) STRICT;

-- what the user should know about this recording, one sentence each
CREATE TABLE note (
    run_id INTEGER NOT NULL REFERENCES run (id),
    text   TEXT NOT NULL
) STRICT;

CREATE VIEW v_module AS
    SELECT m.id, s.text AS path, m.build_id
    FROM module m JOIN string s ON s.id = m.path_id;

CREATE VIEW v_process AS
    SELECT p.id, p.run_id, p.pid, p.parent_id, e.text AS exe, c.text AS comm, p.start_ns,
           p.end_ns, p.agent, p.nr_agent_lost
    FROM process p LEFT JOIN string e ON e.id = p.exe_id LEFT JOIN string c ON c.id = p.comm_id;

CREATE VIEW v_thread AS
    SELECT t.id, t.process_id, p.pid, t.tid, t.path, n.text AS name, t.start_ns, t.end_ns,
           t.cpu_ns, m.path AS start_module, t.start_offset_bytes
    FROM thread t JOIN process p ON p.id = t.process_id
    LEFT JOIN string n ON n.id = t.name_id LEFT JOIN v_module m ON m.id = t.start_module_id;

CREATE VIEW v_object AS
    SELECT o.id, o.process_id, o.kind, n.text AS name, m.path AS module, o.offset_bytes,
           o.callsite_id, o.site_ordinal, o.thread_ordinal, t.path AS creator,
           o.start_address, o.size_bytes, o.start_ns, o.end_ns
    FROM object o LEFT JOIN string n ON n.id = o.name_id
    LEFT JOIN v_module m ON m.id = o.module_id LEFT JOIN thread t ON t.id = o.thread_id;

CREATE VIEW v_callsite AS
    SELECT cf.callsite_id, cf.position, m.path AS module, f.offset_bytes, s.text AS function
    FROM callsite_frame cf JOIN frame f ON f.id = cf.frame_id
    LEFT JOIN v_module m ON m.id = f.module_id LEFT JOIN string s ON s.id = f.function_id;

CREATE VIEW v_sample AS
    SELECT s.rowid AS id, s.time_ns, t.process_id, t.path AS thread, s.thread_id, s.cpu,
           c.node AS cpu_node, so.name AS source,
           CASE s.access WHEN 1 THEN 'read' WHEN 2 THEN 'write' WHEN 3 THEN 'read+write' END
               AS access,
           s.address, s.ip, s.object_id, o.kind AS object_kind,
           s.address - o.start_address AS offset_bytes,
           s.weight, s.latency_cycles, s.data_source, s.memory_node
    FROM sample s JOIN thread t ON t.id = s.thread_id JOIN source so ON so.id = s.source_id
    LEFT JOIN object o ON o.id = s.object_id
    LEFT JOIN cpu c ON c.run_id = so.run_id AND c.cpu = s.cpu;

CREATE VIEW v_source AS
    SELECT run_id, name, state, reason, event, period, period_unit, nr_records, nr_samples,
           nr_no_operand, nr_undecoded, nr_unmatched, nr_lost, nr_throttled
    FROM source;

-- accesses per page and thread, whichever way they were kept; the analyzer reads this
CREATE VIEW v_page_count AS
    SELECT s.object_id, s.address / m.page_size_bytes AS page, s.thread_id, so.name AS source,
           sum(s.access = 1) AS nr_reads, sum(s.access >= 2) AS nr_writes,
           sum(s.access = 0) AS nr_unknown, sum(s.weight) AS weight
    FROM sample s JOIN source so ON so.id = s.source_id JOIN machine m ON m.run_id = so.run_id
    GROUP BY s.object_id, page, s.thread_id, s.source_id
    UNION ALL
    SELECT pc.object_id, pc.page, pc.thread_id, so.name, sum(pc.nr_reads), sum(pc.nr_writes),
           sum(pc.nr_unknown), sum(pc.weight)
    FROM page_count pc JOIN source so ON so.id = pc.source_id
    GROUP BY pc.object_id, pc.page, pc.thread_id, pc.source_id;
