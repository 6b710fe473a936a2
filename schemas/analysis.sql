-- The analysis tables: what numapgo analyze derived from the recording tables of the same file.
-- They can be dropped and are rebuilt by each analyze; meta 'analysis_version' counts incompatible
-- changes of this file. Units are in the column names. Nodes are logical: positions among the
-- nodes of the machine that was planned for. Pages count from an object's start; regions are 2 MiB
-- of address space. schemas/README.md explains each table and column.
DROP VIEW IF EXISTS v_decision;
DROP VIEW IF EXISTS v_table_decision;
DROP VIEW IF EXISTS v_affinity;
DROP VIEW IF EXISTS v_alternative;
DROP TABLE IF EXISTS analysis;
DROP TABLE IF EXISTS affinity_group;
DROP TABLE IF EXISTS group_object;
DROP TABLE IF EXISTS affinity;
DROP TABLE IF EXISTS decision;
DROP TABLE IF EXISTS table_decision;
DROP TABLE IF EXISTS thread_decision;
DROP TABLE IF EXISTS alternative;
DROP TABLE IF EXISTS node_traffic;
DROP TABLE IF EXISTS prediction;

-- one row: what was analysed, for which machine
CREATE TABLE analysis (
    run_id           INTEGER NOT NULL REFERENCES run (id),
    program          TEXT,             -- path of the executable
    pid              INTEGER,
    machine          TEXT NOT NULL,    -- name of the machine planned for
    fingerprint      TEXT NOT NULL,    -- of that machine
    nr_nodes         INTEGER NOT NULL,
    objective        TEXT NOT NULL,    -- throughput, makespan
    plan_tables      INTEGER NOT NULL, -- 0: page tables were left to first touch
    max_nodes        INTEGER NOT NULL, -- nodes that threads might use at most; 0: all
    nr_samples       INTEGER NOT NULL, -- address samples used
    nr_start_samples INTEGER NOT NULL, -- of these, while objects were initialised
    start_weight     REAL NOT NULL,    -- factor that those count with
    nr_nodes_used    INTEGER NOT NULL, -- nodes that threads were placed on
    gain             REAL NOT NULL,    -- share of first touch's memory time saved, predicted
    gain_error       REAL,             -- standard error of that; NULL: no estimate
    leave            INTEGER NOT NULL, -- 1: the plan leaves everything as it is
    leave_reason     TEXT
) STRICT;

-- objects that are one thing to a plan
CREATE TABLE affinity_group (
    id                 INTEGER PRIMARY KEY,
    kind               TEXT NOT NULL,    -- as in object.kind
    name               TEXT,
    module_id          INTEGER REFERENCES module (id),
    offset_bytes       INTEGER,
    callsite_id        INTEGER REFERENCES callsite (id),
    which              TEXT NOT NULL,    -- all, site_ordinal, thread_ordinal
    ordinal            INTEGER,
    creator            TEXT,             -- thread path, for thread_ordinal
    nr_objects         INTEGER NOT NULL, -- recorded objects in it
    size_bytes         INTEGER NOT NULL, -- of the largest
    nr_samples         INTEGER NOT NULL, -- start-up left out where there are others
    share              REAL NOT NULL,    -- of all accesses, 0..1
    pattern            TEXT NOT NULL,    -- private, blocks, shared, unused
    main_thread        TEXT,             -- path of the thread that uses it most
    main_share         REAL NOT NULL,    -- its part of the accesses
    nr_users           INTEGER NOT NULL, -- threads with 1 % of the accesses or more
    first_touch_thread TEXT,             -- path of the thread that touched most of it first
    first_touch_local_share REAL NOT NULL, -- of its accesses, if nothing is done
    local_share        REAL NOT NULL,    -- of its accesses, as decided
    is_placed          INTEGER NOT NULL, -- 1: a plan can place it, and there are samples
    confidence         REAL NOT NULL,    -- 0..1
    reason             TEXT
) STRICT;

CREATE TABLE group_object (
    group_id  INTEGER NOT NULL REFERENCES affinity_group (id),
    object_id INTEGER NOT NULL REFERENCES object (id),
    PRIMARY KEY (group_id, object_id)
) STRICT, WITHOUT ROWID;

-- who uses which pages, after borrowing from the neighbourhood
CREATE TABLE affinity (
    group_id   INTEGER NOT NULL REFERENCES affinity_group (id),
    first_page INTEGER NOT NULL,
    nr_pages   INTEGER NOT NULL,
    thread     TEXT NOT NULL,            -- path
    weight     REAL NOT NULL             -- accesses in units of one mean sample
) STRICT;

CREATE TABLE decision (
    group_id   INTEGER NOT NULL REFERENCES affinity_group (id),
    first_page INTEGER NOT NULL,
    nr_pages   INTEGER NOT NULL,
    policy     TEXT NOT NULL,            -- bind, interleave
    node       INTEGER,                  -- bind: the node
    PRIMARY KEY (group_id, first_page)
) STRICT, WITHOUT ROWID;

CREATE TABLE table_decision (
    group_id     INTEGER NOT NULL REFERENCES affinity_group (id),
    first_region INTEGER NOT NULL,
    nr_regions   INTEGER NOT NULL,
    node         INTEGER NOT NULL,       -- of the leaf page-table pages
    PRIMARY KEY (group_id, first_region)
) STRICT, WITHOUT ROWID;

CREATE TABLE thread_decision (
    path             TEXT PRIMARY KEY,
    name             TEXT,
    node             INTEGER NOT NULL,   -- as decided
    first_touch_node INTEGER NOT NULL,   -- where a scheduler would likely have it
    busy             REAL NOT NULL,      -- CPUs that it wants: its CPU time / the busiest's
    nr_samples       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- what each group's accesses would cost elsewhere, at idle latency, threads as decided
CREATE TABLE alternative (
    group_id  INTEGER NOT NULL REFERENCES affinity_group (id),
    placement TEXT NOT NULL,             -- 'node N', 'interleave', 'decision'
    cost_ns   REAL NOT NULL,
    PRIMARY KEY (group_id, placement)
) STRICT, WITHOUT ROWID;

CREATE TABLE node_traffic (
    placement   TEXT NOT NULL,           -- 'first touch', 'plan'
    cpu_node    INTEGER NOT NULL,
    memory_node INTEGER NOT NULL,
    share       REAL NOT NULL,           -- of all accesses
    PRIMARY KEY (placement, cpu_node, memory_node)
) STRICT, WITHOUT ROWID;

-- the plan's row is scored on samples that the plan was not made from
CREATE TABLE prediction (
    placement    TEXT PRIMARY KEY,       -- first touch, interleave, single node, plan
    why_not      TEXT,                   -- not possible, with the reason; the rest is NULL then
    lar          REAL,                   -- local access ratio, 0..1
    memory_ns    REAL,                   -- modelled time of the sampled accesses
    walk_ns      REAL,                   -- modelled time of page walks
    remote_walks REAL,                   -- share of walks to a remote table, 0..1
    slowest_ns   REAL,                   -- both, of the slowest thread
    highest_load REAL                    -- of a node's or link's bandwidth, 1 = full
) STRICT, WITHOUT ROWID;

CREATE VIEW v_decision AS
    SELECT g.id AS group_id, g.kind, g.name, g.which, g.ordinal, g.creator, g.size_bytes,
           g.nr_samples, g.share, g.pattern, d.first_page, d.nr_pages, d.policy, d.node,
           g.confidence, g.reason
    FROM decision d JOIN affinity_group g ON g.id = d.group_id;

CREATE VIEW v_table_decision AS
    SELECT g.id AS group_id, g.kind, g.name, t.first_region, t.nr_regions, t.node
    FROM table_decision t JOIN affinity_group g ON g.id = t.group_id;

CREATE VIEW v_affinity AS
    SELECT g.id AS group_id, g.kind, g.name, a.first_page, a.nr_pages, a.thread, t.node, a.weight
    FROM affinity a JOIN affinity_group g ON g.id = a.group_id
    LEFT JOIN thread_decision t ON t.path = a.thread;

CREATE VIEW v_alternative AS
    SELECT g.id AS group_id, g.kind, g.name, a.placement, a.cost_ns
    FROM alternative a JOIN affinity_group g ON g.id = a.group_id;
