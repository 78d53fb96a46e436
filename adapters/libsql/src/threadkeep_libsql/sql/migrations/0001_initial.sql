-- Schema 1. Times and seq are int64 microseconds; JSON is text; texts compare as bytes (SQLite's BINARY).

CREATE TABLE threadkeep_migration (
    version INTEGER PRIMARY KEY,
    token_version INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
);

-- The metadata keys that are indexed; a single '*' stands for all of them.
CREATE TABLE threadkeep_indexed_key (key TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO threadkeep_indexed_key VALUES ('*');

-- Every resource that owns a thread or has a record of its own; without one, created_at is null.
CREATE TABLE threadkeep_resource (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    working_memory TEXT,
    metadata TEXT NOT NULL DEFAULT '{}',
    revision INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER,
    updated_at INTEGER
);

CREATE TABLE threadkeep_thread (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    resource_key INTEGER NOT NULL,
    title TEXT NOT NULL,
    metadata TEXT NOT NULL,
    tokens TEXT NOT NULL, -- {"priority": "4O0H0000000000000"}: the filter token of each key, without "key="
    working_memory TEXT,
    message_count INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX threadkeep_thread_created ON threadkeep_thread (created_at, id);
CREATE INDEX threadkeep_thread_updated ON threadkeep_thread (updated_at, id);
CREATE INDEX threadkeep_thread_resource_created ON threadkeep_thread (resource_key, created_at, id);
CREATE INDEX threadkeep_thread_resource_updated ON threadkeep_thread (resource_key, updated_at, id);

CREATE TABLE threadkeep_message (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    thread_key INTEGER NOT NULL,
    role TEXT NOT NULL,
    type TEXT NOT NULL,
    content TEXT NOT NULL,
    metadata TEXT NOT NULL,
    tokens TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seq INTEGER NOT NULL
);

-- Every order that messages are read in: a message stands here once for its thread (scope = thread key) and once for
-- its resource (scope = minus resource key), each under the empty token and under each of its indexed tokens. So a page
-- of a thread or a resource, filtered by one equality or not, is one range of this table, in order, at any size.
CREATE TABLE threadkeep_position (
    scope INTEGER NOT NULL,
    token TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (scope, token, created_at, seq, id)
) WITHOUT ROWID;

-- The same for threads: scope is minus the resource key, and 0 for all threads.
CREATE TABLE threadkeep_thread_position (
    scope INTEGER NOT NULL,
    token TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    id TEXT NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (scope, token, created_at, id)
) WITHOUT ROWID;

CREATE TABLE threadkeep_memory (
    id INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    folded TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    actor_type TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX threadkeep_memory_actor ON threadkeep_memory (actor_type, actor_id, created_at DESC, id);
CREATE INDEX threadkeep_memory_created ON threadkeep_memory (created_at DESC, id);
