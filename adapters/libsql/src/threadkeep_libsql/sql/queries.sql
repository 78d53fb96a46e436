-- Every statement the adapter can send. {words} are filled from constants of _queries.py; values are always parameters.

-- name: columns
-- A message as _codec.message reads it.
m.id, t.id, r.id, m.role, m.type, m.content, m.metadata, m.created_at, m.seq

-- name: thread_columns
-- A thread as _codec.thread reads it.
t.id, r.id, t.title, t.metadata, t.working_memory, t.message_count, t.created_at, t.updated_at

-- name: page
-- One range of positions, in order, is the page: scope and token are equal, dates and cursor bound the rest. It finds its
-- scope itself, so that the commonest call is one statement.
SELECT {columns}
FROM threadkeep_position AS p
CROSS JOIN threadkeep_message AS m NOT INDEXED ON m.key = p.key
CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = m.thread_key
CROSS JOIN threadkeep_resource AS r NOT INDEXED ON r.key = t.resource_key
WHERE p.scope = {scope} AND p.token = ?
AND (p.created_at, p.seq, p.id) > (?, ?, ?) AND (p.created_at, p.seq, p.id) < (?, ?, ?) {indexed}
ORDER BY p.created_at {direction}, p.seq {direction}, p.id {direction}
LIMIT ?

-- name: scope_of_thread
(SELECT key FROM threadkeep_thread WHERE id = ?)

-- name: scope_of_resource
(SELECT -key FROM threadkeep_resource WHERE id = ?)

-- name: is_indexed
-- Without rows it stays open whether the key is not indexed or nothing matches.
AND EXISTS (SELECT 1 FROM threadkeep_indexed_key AS i WHERE i.key IN ('*', ?))

-- name: positions
-- The same without bodies, for skipping an offset and for merging several ranges. A range of tokens has no order of its
-- own: then every match is read from the index and sorted.
SELECT p.created_at, p.seq, p.id, p.key
FROM threadkeep_position AS p {message}
WHERE p.scope = ? AND {tokens}
AND (p.created_at, p.seq, p.id) > (?, ?, ?) AND (p.created_at, p.seq, p.id) < (?, ?, ?) {residual}
ORDER BY p.created_at {direction}, p.seq {direction}, p.id {direction}
LIMIT ? OFFSET ?

-- name: count
SELECT count(*)
FROM threadkeep_position AS p {message}
WHERE p.scope = ? AND {tokens}
AND (p.created_at, p.seq, p.id) > (?, ?, ?) AND (p.created_at, p.seq, p.id) < (?, ?, ?) {residual}

-- name: with_message
-- Only a filter beyond the leading condition needs the message itself.
CROSS JOIN threadkeep_message AS m NOT INDEXED ON m.key = p.key

-- name: probe
-- How many entries a token has, up to a bound: which of several conditions to lead with.
SELECT count(*) FROM (SELECT 1 FROM threadkeep_position WHERE scope = ? AND token = ? LIMIT ?)

-- name: thread_probe
SELECT count(*) FROM (SELECT 1 FROM threadkeep_thread_position WHERE scope = ? AND token = ? LIMIT ?)

-- name: messages_by_key
SELECT m.key, {columns}
FROM json_each(?) AS wanted
CROSS JOIN threadkeep_message AS m NOT INDEXED ON m.key = wanted.value
CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = m.thread_key
CROSS JOIN threadkeep_resource AS r NOT INDEXED ON r.key = t.resource_key

-- name: messages_by_id
SELECT m.key, {columns}
FROM json_each(?) AS wanted
CROSS JOIN threadkeep_message AS m ON m.id = wanted.value
CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = m.thread_key
CROSS JOIN threadkeep_resource AS r NOT INDEXED ON r.key = t.resource_key

-- name: placements
-- Where messages are, without their bodies.
SELECT m.id, t.id, r.id, m.created_at, m.seq, m.key, m.thread_key
FROM json_each(?) AS wanted
CROSS JOIN threadkeep_message AS m ON m.id = wanted.value
CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = m.thread_key
CROSS JOIN threadkeep_resource AS r NOT INDEXED ON r.key = t.resource_key

-- name: owners
-- Threads by id: owner, key, counter, owner's key.
SELECT t.id, r.id, t.key, t.message_count, t.resource_key
FROM json_each(?) AS wanted
CROSS JOIN threadkeep_thread AS t ON t.id = wanted.value
CROSS JOIN threadkeep_resource AS r NOT INDEXED ON r.key = t.resource_key

-- name: resource_message_count
-- The total of a resource without filter: the sum of its threads' counters.
SELECT coalesce(sum(message_count), 0) FROM threadkeep_thread WHERE resource_key = ?

-- name: indexed_keys
SELECT key FROM threadkeep_indexed_key ORDER BY key

-- name: next_message_key
SELECT coalesce(max(key), 0) + 1 FROM threadkeep_message

-- name: insert_message
INSERT INTO threadkeep_message (key, id, thread_key, role, type, content, metadata, tokens, created_at, seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: update_message
UPDATE threadkeep_message SET thread_key = ?, role = ?, type = ?, content = ?, metadata = ?, tokens = ? WHERE key = ?

-- name: delete_message
DELETE FROM threadkeep_message WHERE key = ?

-- name: touch_thread
-- The last microsecond of year 9999, which an import may have set, stays as it is.
UPDATE threadkeep_thread
SET message_count = message_count + ?, updated_at = min(max(?, updated_at + 1), 253402300799999999)
WHERE key = ?

-- name: insert_position
INSERT INTO threadkeep_position (scope, token, created_at, seq, id, key) VALUES (?, ?, ?, ?, ?, ?)

-- name: index_messages
-- The positions of the messages in a range of keys: 36,000 messages a second in one set, 16,000 by a trigger a row.
INSERT INTO threadkeep_position (scope, token, created_at, seq, id, key)
SELECT iif(side.thread, each.thread_key, -each.resource_key), each.token, each.created_at, each.seq, each.id, each.key
FROM (
    SELECT m.thread_key, t.resource_key, m.created_at, m.seq, m.id, m.key, '' AS token
    FROM threadkeep_message AS m
    CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = m.thread_key
    WHERE m.key BETWEEN ? AND ?
    UNION ALL
    SELECT m.thread_key, t.resource_key, m.created_at, m.seq, m.id, m.key, e.key || '=' || e.value
    FROM threadkeep_message AS m
    CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = m.thread_key
    CROSS JOIN json_each(m.tokens) AS e
    WHERE m.key BETWEEN ? AND ? AND EXISTS (SELECT 1 FROM threadkeep_indexed_key AS i WHERE i.key IN ('*', e.key))
) AS each
CROSS JOIN (SELECT TRUE AS thread UNION ALL SELECT FALSE) AS side

-- name: unindex_message
-- Each column on its own, so that all five find the entry; one row value of five would bound only the scope.
DELETE FROM threadkeep_position
WHERE scope IN (
    SELECT thread_key FROM threadkeep_message WHERE key = ?1
    UNION ALL
    SELECT -t.resource_key
    FROM threadkeep_message AS m
    CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = m.thread_key
    WHERE m.key = ?1
)
AND token IN (
    SELECT ''
    UNION ALL
    SELECT e.key || '=' || e.value
    FROM threadkeep_message AS m
    CROSS JOIN json_each(m.tokens) AS e
    WHERE m.key = ?1
)
AND (created_at, seq, id) = (SELECT created_at, seq, id FROM threadkeep_message WHERE key = ?1)

-- name: unindex_thread_from_resource
-- The resource's positions of a thread's messages, found by the thread's own.
DELETE FROM threadkeep_position
WHERE scope = -?
AND (token, created_at, seq, id) IN (SELECT token, created_at, seq, id FROM threadkeep_position WHERE scope = ?)

-- name: index_thread_for_resource
INSERT INTO threadkeep_position (scope, token, created_at, seq, id, key)
SELECT -?, token, created_at, seq, id, key FROM threadkeep_position WHERE scope = ?

-- name: delete_messages_in_scope
DELETE FROM threadkeep_message
WHERE key IN (SELECT key FROM threadkeep_position WHERE scope = ? AND token = '')

-- name: delete_positions_in_scope
DELETE FROM threadkeep_position WHERE scope = ?

-- name: delete_resource_thread_positions
-- The threads' own positions of all messages of a resource.
DELETE FROM threadkeep_position WHERE scope IN (SELECT key FROM threadkeep_thread WHERE resource_key = ?)

-- name: drop_token_positions
DELETE FROM threadkeep_position WHERE token <> ''

-- name: index_tokens
-- Every token position anew, after the choice of indexed keys changed.
INSERT INTO threadkeep_position (scope, token, created_at, seq, id, key)
SELECT iif(side.thread, m.thread_key, -t.resource_key), e.key || '=' || e.value, m.created_at, m.seq, m.id, m.key
FROM threadkeep_message AS m
CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = m.thread_key
CROSS JOIN json_each(m.tokens) AS e
CROSS JOIN (SELECT TRUE AS thread UNION ALL SELECT FALSE) AS side
WHERE EXISTS (SELECT 1 FROM threadkeep_indexed_key AS i WHERE i.key IN ('*', e.key))

-- name: drop_thread_positions
DELETE FROM threadkeep_thread_position

-- name: index_thread
INSERT INTO threadkeep_thread_position (scope, token, created_at, id, key)
SELECT iif(side.resource, -t.resource_key, 0), e.key || '=' || e.value, t.created_at, t.id, t.key
FROM threadkeep_thread AS t
CROSS JOIN json_each(t.tokens) AS e
CROSS JOIN (SELECT TRUE AS resource UNION ALL SELECT FALSE) AS side
WHERE t.key BETWEEN ? AND ? AND EXISTS (SELECT 1 FROM threadkeep_indexed_key AS i WHERE i.key IN ('*', e.key))

-- name: unindex_thread
DELETE FROM threadkeep_thread_position
WHERE scope IN (SELECT 0 UNION ALL SELECT -resource_key FROM threadkeep_thread WHERE key = ?1)
AND token IN (
    SELECT e.key || '=' || e.value
    FROM threadkeep_thread AS t
    CROSS JOIN json_each(t.tokens) AS e
    WHERE t.key = ?1
)
AND (created_at, id) = (SELECT created_at, id FROM threadkeep_thread WHERE key = ?1)

-- name: thread_by_id
SELECT {thread_columns}, t.key, t.resource_key
FROM threadkeep_thread AS t
CROSS JOIN threadkeep_resource AS r NOT INDEXED ON r.key = t.resource_key
WHERE t.id = ?

-- name: threads_by_key
SELECT t.key, {thread_columns}
FROM json_each(?) AS wanted
CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = wanted.value
CROSS JOIN threadkeep_resource AS r NOT INDEXED ON r.key = t.resource_key

-- name: thread_walk
-- Threads in the order of an index on (resource_key,) time, id.
SELECT t.{order_by}, t.id, t.key
FROM threadkeep_thread AS t
WHERE {resource} (t.{order_by}, t.id) > (?, ?) AND (t.{order_by}, t.id) < (?, ?) {residual}
ORDER BY t.{order_by} {direction}, t.id {direction}
LIMIT ? OFFSET ?

-- name: thread_count
SELECT count(*) FROM threadkeep_thread AS t WHERE {resource} TRUE {residual}

-- name: in_resource
t.resource_key = ? AND

-- name: thread_positions
-- Threads by creation, under one token.
SELECT tp.created_at, tp.id, tp.key
FROM threadkeep_thread_position AS tp {thread}
WHERE tp.scope = ? AND {tokens} AND (tp.created_at, tp.id) > (?, ?) AND (tp.created_at, tp.id) < (?, ?) {residual}
ORDER BY tp.created_at {direction}, tp.id {direction}
LIMIT ? OFFSET ?

-- name: thread_matches
-- Threads under a range of tokens, or ordered by a time the tokens are not: every match is read and sorted.
SELECT t.{order_by}, t.id, t.key
FROM threadkeep_thread_position AS tp {thread}
WHERE tp.scope = ? AND {tokens} AND (t.{order_by}, t.id) > (?, ?) AND (t.{order_by}, t.id) < (?, ?) {residual}
ORDER BY t.{order_by} {direction}, t.id {direction}
LIMIT ? OFFSET ?

-- name: thread_match_count
SELECT count(*) FROM threadkeep_thread_position AS tp {thread} WHERE tp.scope = ? AND {tokens} {residual}

-- name: with_thread
CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = tp.key

-- name: window_targets
-- Included messages with their scopes: their thread and its owner.
SELECT m.id, m.created_at, m.seq, m.key, m.thread_key, t.id, r.id
FROM json_each(?) AS wanted
CROSS JOIN threadkeep_message AS m ON m.id = wanted.value
CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = m.thread_key
CROSS JOIN threadkeep_resource AS r NOT INDEXED ON r.key = t.resource_key

-- name: keys_before
SELECT key FROM threadkeep_position
WHERE scope = ? AND token = '' AND (created_at, seq, id) < (?, ?, ?)
ORDER BY created_at DESC, seq DESC, id DESC
LIMIT ?

-- name: keys_after
SELECT key FROM threadkeep_position
WHERE scope = ? AND token = '' AND (created_at, seq, id) > (?, ?, ?)
ORDER BY created_at, seq, id
LIMIT ?

-- name: insert_thread
INSERT INTO threadkeep_thread
    (id, resource_key, title, metadata, tokens, working_memory, message_count, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: update_thread
UPDATE threadkeep_thread
SET resource_key = ?, title = ?, metadata = ?, tokens = ?, working_memory = ?, created_at = ?, updated_at = ?
WHERE key = ?

-- name: delete_thread
DELETE FROM threadkeep_thread WHERE key = ?

-- name: thread_key
SELECT key FROM threadkeep_thread WHERE id = ?

-- name: create_copy_table
CREATE TEMP TABLE IF NOT EXISTS threadkeep_copy (rank INTEGER PRIMARY KEY, old_key INTEGER, old_id TEXT, new_id TEXT)

-- name: clear_copy_table
DELETE FROM temp.threadkeep_copy

-- name: choose_copies
-- The newest messages within bounds, ranked in the total order, each with a new UUID (version 4).
INSERT INTO temp.threadkeep_copy (rank, old_key, old_id, new_id)
SELECT
    row_number() OVER (ORDER BY created_at, seq, id) - 1,
    key,
    id,
    lower(
        hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
        || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))
    )
FROM (
    SELECT created_at, seq, id, key
    FROM threadkeep_position
    WHERE scope = ? AND token = '' AND (created_at, seq, id) > (?, ?, ?) AND (created_at, seq, id) < (?, ?, ?) {chosen}
    ORDER BY created_at DESC, seq DESC, id DESC
    LIMIT ?
)

-- name: chosen
AND id IN (SELECT value FROM json_each(?))

-- name: copied_ids
SELECT old_id, new_id FROM temp.threadkeep_copy ORDER BY rank

-- name: copy_messages
INSERT INTO threadkeep_message (key, id, thread_key, role, type, content, metadata, tokens, created_at, seq)
SELECT ? + c.rank, c.new_id, ?, m.role, m.type, m.content, m.metadata, m.tokens, m.created_at, ? + c.rank
FROM temp.threadkeep_copy AS c
CROSS JOIN threadkeep_message AS m NOT INDEXED ON m.key = c.old_key
ORDER BY c.rank

-- name: copied_messages
SELECT {columns}
FROM threadkeep_message AS m
CROSS JOIN threadkeep_thread AS t NOT INDEXED ON t.key = m.thread_key
CROSS JOIN threadkeep_resource AS r NOT INDEXED ON r.key = t.resource_key
WHERE m.key BETWEEN ? AND ?
ORDER BY m.key

-- name: ensure_resource
INSERT INTO threadkeep_resource (id) VALUES (?) ON CONFLICT (id) DO NOTHING

-- name: resource_key
SELECT key FROM threadkeep_resource WHERE id = ?

-- name: resource_by_id
-- One without times has no record of its own.
SELECT id, working_memory, metadata, revision, created_at, updated_at
FROM threadkeep_resource
WHERE id = ? AND created_at IS NOT NULL

-- name: put_resource
INSERT INTO threadkeep_resource (id, working_memory, metadata, revision, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    working_memory = excluded.working_memory,
    metadata = excluded.metadata,
    revision = excluded.revision,
    created_at = excluded.created_at,
    updated_at = excluded.updated_at

-- name: list_resources
SELECT id, working_memory, metadata, revision, created_at, updated_at
FROM threadkeep_resource
WHERE id > ? AND created_at IS NOT NULL
ORDER BY id
LIMIT ? OFFSET ?

-- name: count_resources
SELECT count(*) FROM threadkeep_resource WHERE created_at IS NOT NULL

-- name: resource_threads
SELECT key FROM threadkeep_thread WHERE resource_key = ?

-- name: delete_resource
DELETE FROM threadkeep_resource WHERE key = ?

-- name: insert_memory
INSERT INTO threadkeep_memory (id, content, folded, pinned, actor_type, actor_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: replace_memory
REPLACE INTO threadkeep_memory (id, content, folded, pinned, actor_type, actor_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: taken_memory
-- The first of them that is taken, in the order in which they were given.
SELECT m.id
FROM json_each(?) AS wanted
CROSS JOIN threadkeep_memory AS m ON m.id = wanted.value
ORDER BY wanted.key
LIMIT 1

-- name: list_memories
SELECT id, content, folded, pinned, actor_type, actor_id, created_at
FROM threadkeep_memory
WHERE {actor} created_at <= ? AND (created_at < ? OR id > ?) {recall}
ORDER BY created_at DESC, id
LIMIT ?

-- name: count_memories
SELECT count(*) FROM threadkeep_memory WHERE {actor} TRUE {recall}

-- name: of_actor
actor_type = ? AND actor_id = ? AND

-- name: recalled
AND NOT pinned AND instr(folded, ?) > 0

-- name: pin_memory
UPDATE threadkeep_memory SET pinned = ? WHERE id = ?

-- name: memory_by_id
SELECT id, content, folded, pinned, actor_type, actor_id, created_at FROM threadkeep_memory WHERE id = ?

-- name: delete_memories
DELETE FROM threadkeep_memory
WHERE actor_type = ? AND actor_id = ? AND id IN (SELECT value FROM json_each(?))

-- name: delete_actor_memories
DELETE FROM threadkeep_memory WHERE actor_type = ? AND actor_id = ?
