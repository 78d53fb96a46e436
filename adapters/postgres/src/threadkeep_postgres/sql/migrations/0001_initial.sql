-- Schema 1. {schema} is the quoted name of the schema. Times and seq are bigint microseconds: no setting of a session
-- changes what they mean. JSON is text, kept exactly as it was written. Every text compares as bytes (COLLATE "C"),
-- which is the order of code points, whatever the database's own collation is.
--
-- Of indexes that look equally good, as all do on an empty table, the planner takes the one made last, and a session may
-- keep that plan. So the narrower index is made after those that could do its work by reading more.

-- The metadata keys that are indexed; a single '*' stands for all of them.
CREATE TABLE {schema}.indexed_key (key text COLLATE "C" PRIMARY KEY);
INSERT INTO {schema}.indexed_key VALUES ('*');

-- Every resource that owns a thread or has a record of its own; without one, created_at is null.
CREATE TABLE {schema}.resource (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    working_memory text,
    metadata text NOT NULL DEFAULT '{{}}',
    revision bigint NOT NULL DEFAULT 0,
    created_at bigint,
    updated_at bigint
);

-- The reference to the resource is a foreign key, so that a thread cannot be made under a resource that is being
-- deleted. Nothing else needs one: whoever writes a message holds the lock of its thread.
CREATE TABLE {schema}.thread (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    resource_key bigint NOT NULL REFERENCES {schema}.resource,
    message_count bigint NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    title text COLLATE "C" NOT NULL,
    metadata text NOT NULL,
    tokens text[] COLLATE "C" NOT NULL, -- the filter tokens of the metadata
    working_memory text
) WITH (fillfactor = 85); -- every write to its messages touches a thread
CREATE INDEX thread_created ON {schema}.thread (created_at, id);
CREATE INDEX thread_updated ON {schema}.thread (updated_at, id);
CREATE INDEX thread_resource_created ON {schema}.thread (resource_key, created_at, id);
CREATE INDEX thread_resource_updated ON {schema}.thread (resource_key, updated_at, id);
ALTER TABLE {schema}.thread ADD CONSTRAINT thread_id UNIQUE (id);

-- resource_key repeats the thread's, so that the pages of a resource are one range of an index too.
CREATE TABLE {schema}.message (
    id text COLLATE "C" NOT NULL,
    thread_key bigint NOT NULL,
    resource_key bigint NOT NULL,
    created_at bigint NOT NULL,
    seq bigint NOT NULL,
    role text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    tokens text[] COLLATE "C" NOT NULL,
    metadata text NOT NULL,
    content text NOT NULL
);
CREATE INDEX message_thread ON {schema}.message (thread_key, created_at, seq, id);
CREATE INDEX message_resource ON {schema}.message (resource_key, created_at, seq, id);
ALTER TABLE {schema}.message ADD CONSTRAINT message_id PRIMARY KEY (id);

-- A message stands here under each of its indexed tokens, so that a page of a thread or of a resource filtered by one
-- equality is one range of an index, in order, at any size and wherever the matches are. The largest entry has 8 + 429
-- (token) + 16 + 1,020 (id) bytes and some for alignment, of the 2,704 that an index takes.
CREATE TABLE {schema}.position (
    thread_key bigint NOT NULL,
    resource_key bigint NOT NULL,
    created_at bigint NOT NULL,
    seq bigint NOT NULL,
    token text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL
);
CREATE INDEX position_resource ON {schema}.position (resource_key, token, created_at, seq, id);
ALTER TABLE {schema}.position ADD CONSTRAINT position_thread PRIMARY KEY (thread_key, token, created_at, seq, id);

-- The same for threads, of one resource and of all.
CREATE TABLE {schema}.thread_position (
    resource_key bigint NOT NULL,
    created_at bigint NOT NULL,
    token text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL
);
ALTER TABLE {schema}.thread_position ADD CONSTRAINT thread_position_all PRIMARY KEY (token, created_at, id);
CREATE INDEX thread_position_resource ON {schema}.thread_position (resource_key, token, created_at, id);

-- Archive memories. folded is what recall searches: the text after Unicode case folding.
CREATE TABLE {schema}.memory (
    id bigint NOT NULL,
    created_at bigint NOT NULL,
    pinned boolean NOT NULL,
    actor_type text COLLATE "C" NOT NULL,
    actor_id text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    folded text COLLATE "C" NOT NULL
);
CREATE INDEX memory_created ON {schema}.memory (created_at DESC, id);
CREATE INDEX memory_actor ON {schema}.memory (actor_type, actor_id, created_at DESC, id);
ALTER TABLE {schema}.memory ADD CONSTRAINT memory_id PRIMARY KEY (id);
