-- Every statement the adapter can send. {words} are filled from constants of _queries.py; :names become parameters.
--
-- The plans are meant to be the same for every value and every state of the statistics: an ordered range of one index
-- inside LATERAL with its own limit, then look-ups by key. OFFSET 0 keeps a look-up a look-up. Rows by a list of ids are
-- one look-up an id (messages_given): for id = ANY(...) a plan of an empty table may walk another index that has the id.

-- name: message_columns
-- A message as _codec.message reads it.
m.id, t.id, r.id, m.role, m.type, m.content, m.metadata, m.created_at, m.seq

-- name: thread_columns
-- A thread as _codec.thread reads it.
t.id, r.id, t.title, t.metadata, t.working_memory, t.message_count, t.created_at, t.updated_at

-- name: in_threads
-- The scope of a query: some threads, each with its owner.
{schema}.thread AS t JOIN {schema}.resource AS r ON r.key = t.resource_key

-- name: where_thread
t.id = :thread

-- name: where_owned
r.id = :resource

-- name: in_given_threads
(SELECT w.id AS wanted FROM unnest(:threads::text[]) AS w (id)) AS w
CROSS JOIN LATERAL (SELECT x.* FROM {schema}.thread AS x WHERE x.id = w.wanted OFFSET 0) AS t
CROSS JOIN LATERAL (SELECT x.* FROM {schema}.resource AS x WHERE x.key = t.resource_key OFFSET 0) AS r

-- name: messages_given
unnest(:ids::text[]) AS w (wanted)
CROSS JOIN LATERAL (SELECT x.* FROM {schema}.message AS x WHERE x.id = w.wanted OFFSET 0) AS m
CROSS JOIN LATERAL (SELECT x.id FROM {schema}.thread AS x WHERE x.key = m.thread_key OFFSET 0) AS t
CROSS JOIN LATERAL (SELECT x.id FROM {schema}.resource AS x WHERE x.key = m.resource_key OFFSET 0) AS r

-- name: in_resource
{schema}.resource AS r

-- name: where_resource
r.id = :resource

-- name: thread_of_message
CROSS JOIN LATERAL (SELECT x.id FROM {schema}.thread AS x WHERE x.key = m.thread_key OFFSET 0) AS t

-- name: as_planned
-- The filter was planned for these indexed keys; where they have changed since, nothing is found and it is planned anew.
AND (SELECT coalesce(string_agg(i.key, ',' ORDER BY i.key), '') FROM {schema}.indexed_key AS i) = :indexed

-- name: within
({row}.created_at, {row}.seq, {row}.id) > (:after_at, :after_seq, :after_id)
AND ({row}.created_at, {row}.seq, {row}.id) < (:before_at, :before_seq, :before_id)

-- name: cut
LIMIT :limit OFFSET :skip

-- name: cut_branch
-- Of several branches each may have the whole page.
LIMIT :enough

-- name: message_of_one
-- As message_columns.
m.id, {columns_of_one}, m.role, m.type, m.content, m.metadata, m.created_at, m.seq

-- name: page_of_one
-- One range of the order of one thread or one resource: no plan can need a sort.
SELECT {message_of_one}
FROM {schema}.message AS m {thread}
WHERE m.{scope}_key = {key_of_one} AND {within} {residual}
ORDER BY m.created_at {direction}, m.seq {direction}, m.id {direction}
{cut}

-- name: matches_of_one
-- One range of the position index, then the messages.
SELECT {message_of_one}
FROM (
    SELECT p.created_at, p.seq, p.id
    FROM {schema}.position AS p {candidate}
    WHERE p.{scope}_key = {key_of_one} AND {token} AND {within} {residual} {as_planned}
    ORDER BY p.created_at {direction}, p.seq {direction}, p.id {direction}
    {cut}
) AS f
CROSS JOIN LATERAL (SELECT m.* FROM {schema}.message AS m WHERE m.id = f.id OFFSET 0) AS m {thread}
ORDER BY f.created_at {direction}, f.seq {direction}, f.id {direction}

-- name: key_of_thread
(SELECT key FROM {schema}.thread WHERE id = :thread)

-- name: key_of_resource
(SELECT key FROM {schema}.resource WHERE id = :resource)

-- name: columns_of_thread
:thread::text,
(SELECT r.id FROM {schema}.thread AS t JOIN {schema}.resource AS r ON r.key = t.resource_key WHERE t.id = :thread)

-- name: columns_of_resource
t.id, :resource::text

-- name: page
-- One range of an index a scope, merged.
SELECT {message_columns}
FROM {scopes}
CROSS JOIN LATERAL (
    SELECT m.*
    FROM {schema}.message AS m
    WHERE m.{scope}_key = {alias}.key AND {within} {residual}
    ORDER BY m.created_at {direction}, m.seq {direction}, m.id {direction}
    {branch_limit}
) AS m
{thread}
WHERE {where}
ORDER BY m.created_at {direction}, m.seq {direction}, m.id {direction}
{merged_limit}

-- name: matches
-- One range of the position index a scope and a token, merged, then the messages. A range of tokens has no order of its
-- own: then every match is read from the index and sorted.
SELECT {match_columns}
FROM (
    SELECT b.created_at, b.seq, b.id, {ids}
    FROM {scopes} {points}
    CROSS JOIN LATERAL (
        SELECT p.created_at, p.seq, p.id
        FROM {schema}.position AS p {candidate}
        WHERE p.{scope}_key = {alias}.key AND {token} AND {within} {residual}
        ORDER BY p.created_at {direction}, p.seq {direction}, p.id {direction}
        {branch_limit}
    ) AS b
    WHERE {where} {as_planned}
    ORDER BY b.created_at {direction}, b.seq {direction}, b.id {direction}
    {merged_limit}
) AS f
CROSS JOIN LATERAL (SELECT m.* FROM {schema}.message AS m WHERE m.id = f.id OFFSET 0) AS m
{thread}
ORDER BY f.created_at {direction}, f.seq {direction}, f.id {direction}

-- name: match_columns
-- As message_columns.
m.id, {thread_id}, f.resource_id, m.role, m.type, m.content, m.metadata, m.created_at, m.seq

-- name: points
CROSS JOIN unnest(:tokens::text[]) AS k (token)

-- name: candidate_message
-- Only a filter beyond the leading condition needs the message itself.
CROSS JOIN LATERAL (SELECT m.tokens FROM {schema}.message AS m WHERE m.id = p.id OFFSET 0) AS m

-- name: count_page
SELECT coalesce(sum(b.n), 0)::bigint
FROM {scopes}
CROSS JOIN LATERAL (
    SELECT count(*) AS n
    FROM (
        SELECT
        FROM {schema}.message AS m
        WHERE m.{scope}_key = {alias}.key AND {within} {residual}
        ORDER BY m.created_at, m.seq, m.id
        OFFSET 0
    ) AS m
) AS b
WHERE {where}

-- name: count_matches
SELECT coalesce(sum(b.n), 0)::bigint
FROM {scopes} {points}
CROSS JOIN LATERAL (
    SELECT count(*) AS n
    FROM (
        SELECT
        FROM {schema}.position AS p {candidate}
        WHERE p.{scope}_key = {alias}.key AND {token} AND {within} {residual}
        {in_order}
    ) AS p
) AS b
WHERE {where} {as_planned}

-- name: in_order
-- Asked for only so that the plan is the page's.
ORDER BY p.created_at, p.seq, p.id OFFSET 0

-- name: count_threads_messages
-- The total without a filter: counters of the threads.
SELECT coalesce(sum(t.message_count), 0)::bigint FROM {scopes} WHERE {where}

-- name: count_resource_messages
SELECT coalesce(sum(t.message_count), 0)::bigint
FROM {schema}.resource AS r JOIN {schema}.thread AS t ON t.resource_key = r.key
WHERE r.id = :resource

-- name: probe
-- How many of its first entries a point has, up to a bound, and how far they reach: which of several conditions to lead
-- with.
SELECT k.candidate, b.n, b.created_at, b.seq
FROM {scopes}
CROSS JOIN unnest(:candidates::bigint[], :tokens::text[]) AS k (candidate, token)
CROSS JOIN LATERAL (
    SELECT *
    FROM (
        SELECT p.created_at, p.seq, row_number() OVER (ORDER BY p.created_at {direction}, p.seq {direction}, p.id {direction}) AS n
        FROM {schema}.position AS p
        WHERE p.{scope}_key = {alias}.key AND p.token = k.token AND {within}
        ORDER BY p.created_at {direction}, p.seq {direction}, p.id {direction}
        LIMIT :enough
    ) AS p
    ORDER BY p.n DESC
    LIMIT 1
) AS b
WHERE {where}

-- name: indexed_keys
SELECT key FROM {schema}.indexed_key ORDER BY key

-- name: windows
-- Included messages that are in scope, each with its neighbours.
SELECT {message_columns}
FROM unnest(:ids::text[], :within_threads::text[], :befores::bigint[], :afters::bigint[]) AS w (id, thread_id, before, after)
CROSS JOIN LATERAL (SELECT m.* FROM {schema}.message AS m WHERE m.id = w.id OFFSET 0) AS c
CROSS JOIN LATERAL (SELECT x.id FROM {schema}.thread AS x WHERE x.key = c.thread_key OFFSET 0) AS t
CROSS JOIN LATERAL (SELECT x.id FROM {schema}.resource AS x WHERE x.key = c.resource_key OFFSET 0) AS r
CROSS JOIN LATERAL (
    SELECT c.*
    UNION ALL
    (
        SELECT m.*
        FROM {schema}.message AS m
        WHERE m.thread_key = c.thread_key AND (m.created_at, m.seq, m.id) < (c.created_at, c.seq, c.id)
        ORDER BY m.created_at DESC, m.seq DESC, m.id DESC
        LIMIT w.before
    )
    UNION ALL
    (
        SELECT m.*
        FROM {schema}.message AS m
        WHERE m.thread_key = c.thread_key AND (m.created_at, m.seq, m.id) > (c.created_at, c.seq, c.id)
        ORDER BY m.created_at, m.seq, m.id
        LIMIT w.after
    )
) AS m
WHERE (w.thread_id IS NULL OR w.thread_id = t.id) AND c.resource_key = ANY(ARRAY(SELECT {window_owner}))

-- name: owner_of_threads
t.resource_key FROM {in_given_threads}

-- name: owner_given
o.key FROM {schema}.resource AS o WHERE o.id = :resource

-- name: messages_by_id
SELECT {message_columns}
FROM {messages_given}

-- name: thread_by_id
SELECT {thread_columns}
FROM {schema}.thread AS t JOIN {schema}.resource AS r ON r.key = t.resource_key
WHERE t.id = :id

-- name: lock_thread
-- Locks are taken by a statement of their own: the next one sees what the lock's last holder wrote, which this would not.
SELECT FROM {schema}.thread WHERE id = :id FOR NO KEY UPDATE

-- name: claim_thread
-- To be deleted: nobody may keep it.
SELECT FROM {schema}.thread WHERE id = :id FOR UPDATE

-- name: keep_thread
-- Keeps a thread from being deleted, and nothing else.
SELECT FROM {schema}.thread WHERE id = :id FOR KEY SHARE

-- name: keep_owner
SELECT
FROM {schema}.resource
WHERE key = (SELECT resource_key FROM {schema}.thread WHERE id = :id)
FOR KEY SHARE

-- name: locked_thread
SELECT {thread_columns}, t.key, t.resource_key
FROM {schema}.thread AS t JOIN {schema}.resource AS r ON r.key = t.resource_key
WHERE t.id = :id

-- name: ensure_resource
-- Makes a resource where there is none and keeps it from being deleted.
WITH made AS (
    INSERT INTO {schema}.resource (id)
    SELECT :resource WHERE NOT EXISTS (SELECT FROM {schema}.resource WHERE id = :resource)
    ON CONFLICT (id) DO NOTHING
    RETURNING key
), there AS (
    SELECT key FROM {schema}.resource WHERE id = :resource FOR KEY SHARE
)
SELECT key FROM made UNION ALL SELECT key FROM there

-- name: create_thread
-- A new thread, its owner where that is new, and its positions: nothing at all where the id is taken.
WITH owner_made AS (
    INSERT INTO {schema}.resource (id)
    SELECT :resource
    WHERE NOT EXISTS (SELECT FROM {schema}.resource WHERE id = :resource)
    AND NOT EXISTS (SELECT FROM {schema}.thread WHERE id = :id)
    ON CONFLICT (id) DO NOTHING
    RETURNING key
), owner AS (
    SELECT key FROM owner_made UNION ALL SELECT key FROM {schema}.resource WHERE id = :resource
), made AS (
    INSERT INTO {schema}.thread
        (id, resource_key, title, metadata, tokens, working_memory, message_count, created_at, updated_at)
    SELECT
        :id, key, :title, :metadata, :tokens::text[], :working_memory, :message_count, :created_at::bigint,
        :updated_at::bigint
    FROM owner
    ON CONFLICT (id) DO NOTHING
    RETURNING key, resource_key
), indexed AS (
    INSERT INTO {schema}.thread_position (resource_key, token, created_at, id)
    SELECT made.resource_key, u.token, :created_at::bigint, :id
    FROM made CROSS JOIN unnest(:tokens::text[]) AS u (token)
    WHERE {is_indexed}
)
SELECT key, resource_key FROM made

-- name: is_indexed
(
    '*' = ANY(ARRAY(SELECT key FROM {schema}.indexed_key))
    OR split_part(u.token, '=', 1) = ANY(ARRAY(SELECT key FROM {schema}.indexed_key))
)

-- name: replace_thread
-- Of a thread's positions only those are written that are others than before.
WITH old AS MATERIALIZED (
    SELECT resource_key, tokens, created_at FROM {schema}.thread WHERE key = :key
), unindexed AS (
    DELETE FROM {schema}.thread_position
    WHERE ctid = ANY(ARRAY(
        SELECT p.ctid
        FROM old CROSS JOIN unnest(old.tokens) AS u (token)
        CROSS JOIN LATERAL (
            SELECT p.ctid
            FROM {schema}.thread_position AS p
            WHERE p.resource_key = old.resource_key AND p.token = u.token
            AND p.created_at = old.created_at AND p.id = :id
            OFFSET 0
        ) AS p
        WHERE NOT (u.token = ANY(:tokens::text[]) AND old.created_at = :created_at::bigint)
    ))
), indexed AS (
    INSERT INTO {schema}.thread_position (resource_key, token, created_at, id)
    SELECT :resource_key::bigint, u.token, :created_at::bigint, :id
    FROM old CROSS JOIN unnest(:tokens::text[]) AS u (token)
    WHERE NOT (u.token = ANY(old.tokens) AND old.created_at = :created_at::bigint) AND {is_indexed}
)
UPDATE {schema}.thread
SET resource_key = :resource_key::bigint, title = :title, metadata = :metadata, tokens = :tokens::text[],
    working_memory = :working_memory, created_at = :created_at::bigint, updated_at = :updated_at::bigint
WHERE key = :key

-- name: change_thread
-- A title or a document alone needs no look at what is stored.
UPDATE {schema}.thread AS t
SET title = coalesce(:title, t.title),
    working_memory = CASE WHEN :sets_memory::boolean THEN :working_memory ELSE t.working_memory END,
    updated_at = {risen}
FROM {schema}.resource AS r
WHERE r.key = t.resource_key AND t.id = :id
AND (:owner::text IS NULL OR r.id = :owner) AND (:if_title::text IS NULL OR t.title = :if_title)
RETURNING {thread_columns}

-- name: risen
-- requests.rising, for t.
least(greatest(:now::bigint, t.updated_at + 1), {max_us})

-- name: give_messages
-- The messages of a thread that changes hands.
UPDATE {schema}.message SET resource_key = :resource_key WHERE thread_key = :key

-- name: give_positions
UPDATE {schema}.position SET resource_key = :resource_key WHERE thread_key = :key

-- name: give_thread_positions
UPDATE {schema}.thread_position
SET resource_key = :resource_key
WHERE ctid = ANY(ARRAY(
    SELECT p.ctid
    FROM {schema}.thread AS t CROSS JOIN unnest(t.tokens) AS u (token)
    CROSS JOIN LATERAL (
        SELECT p.ctid
        FROM {schema}.thread_position AS p
        WHERE p.resource_key = t.resource_key AND p.token = u.token AND p.created_at = t.created_at AND p.id = t.id
        OFFSET 0
    ) AS p
    WHERE t.key = :key
))

-- name: delete_positions_of_thread
DELETE FROM {schema}.position WHERE thread_key = :key

-- name: delete_messages_of_thread
DELETE FROM {schema}.message WHERE thread_key = :key

-- name: delete_thread
WITH gone AS (DELETE FROM {schema}.thread WHERE key = :key RETURNING id, resource_key, created_at, tokens)
DELETE FROM {schema}.thread_position
WHERE ctid = ANY(ARRAY(
    SELECT p.ctid
    FROM gone CROSS JOIN unnest(gone.tokens) AS u (token)
    CROSS JOIN LATERAL (
        SELECT p.ctid
        FROM {schema}.thread_position AS p
        WHERE p.resource_key = gone.resource_key AND p.token = u.token
        AND p.created_at = gone.created_at AND p.id = gone.id
        OFFSET 0
    ) AS p
))

-- name: touch_thread
UPDATE {schema}.thread AS t SET message_count = t.message_count + :change, updated_at = {risen} WHERE t.key = :key

-- name: touch_threads
UPDATE {schema}.thread AS t SET message_count = t.message_count + d.change, updated_at = {risen}
FROM unnest(:keys::bigint[], :changes::bigint[]) AS d (key, change)
WHERE t.key = d.key

-- name: given
-- Messages as one JSON parameter: the fastest way in that was measured, COPY included.
SELECT *
FROM json_to_recordset(:messages::json) AS g (
    id text, thread_key bigint, resource_key bigint, role text, type text, content text, metadata text, tokens text[],
    created_at bigint, seq bigint
)

-- name: append_messages
-- New messages of one thread in one statement. Nothing is written where the thread is not there, is not the owner's, or
-- one of the messages exists; _writes.py then finds out why.
WITH given AS MATERIALIZED ({given}), target AS (
    UPDATE {schema}.thread AS t SET message_count = t.message_count + :change, updated_at = {risen}
    FROM {schema}.resource AS r
    WHERE r.key = t.resource_key AND t.id = :thread
    AND (:owner::text IS NULL OR r.id = :owner)
    AND NOT EXISTS (
        SELECT
        FROM unnest(:ids::text[]) AS w (id)
        CROSS JOIN LATERAL (SELECT FROM {schema}.message AS m WHERE m.id = w.id OFFSET 0) AS m
    )
    RETURNING t.key, t.resource_key, r.id AS owner
), saved AS (
    INSERT INTO {schema}.message
        (id, thread_key, resource_key, role, type, content, metadata, tokens, created_at, seq)
    SELECT g.id, target.key, target.resource_key, g.role, g.type, g.content, g.metadata, g.tokens, g.created_at, g.seq
    FROM target CROSS JOIN given AS g
), indexed AS (
    INSERT INTO {schema}.position (thread_key, resource_key, token, created_at, seq, id)
    SELECT target.key, target.resource_key, u.token, g.created_at, g.seq, g.id
    FROM target CROSS JOIN given AS g CROSS JOIN unnest(g.tokens) AS u (token)
    WHERE {is_indexed}
)
SELECT owner FROM target

-- name: insert_messages
WITH given AS MATERIALIZED ({given}), saved AS (
    INSERT INTO {schema}.message
        (id, thread_key, resource_key, role, type, content, metadata, tokens, created_at, seq)
    SELECT id, thread_key, resource_key, role, type, content, metadata, tokens, created_at, seq FROM given
)
INSERT INTO {schema}.position (thread_key, resource_key, token, created_at, seq, id)
SELECT g.thread_key, g.resource_key, u.token, g.created_at, g.seq, g.id
FROM given AS g CROSS JOIN unnest(g.tokens) AS u (token)
WHERE {is_indexed}

-- name: replace_messages
-- Of the positions only those are written that are others than before.
WITH given AS MATERIALIZED ({given}), old AS MATERIALIZED (
    SELECT m.id, m.thread_key, m.created_at, m.seq, m.tokens, g.thread_key AS new_thread_key, g.resource_key, g.tokens AS new
    FROM given AS g
    CROSS JOIN LATERAL (SELECT m.* FROM {schema}.message AS m WHERE m.id = g.id OFFSET 0) AS m
    WHERE m.tokens <> g.tokens OR m.thread_key <> g.thread_key
), unindexed AS (
    DELETE FROM {schema}.position
    WHERE ctid = ANY(ARRAY(
        SELECT p.ctid
        FROM old CROSS JOIN unnest(old.tokens) AS u (token)
        CROSS JOIN LATERAL (
            SELECT p.ctid
            FROM {schema}.position AS p
            WHERE p.thread_key = old.thread_key AND p.token = u.token
            AND p.created_at = old.created_at AND p.seq = old.seq AND p.id = old.id
            OFFSET 0
        ) AS p
        WHERE NOT (old.thread_key = old.new_thread_key AND u.token = ANY(old.new))
    ))
), indexed AS (
    INSERT INTO {schema}.position (thread_key, resource_key, token, created_at, seq, id)
    SELECT old.new_thread_key, old.resource_key, u.token, old.created_at, old.seq, old.id
    FROM old CROSS JOIN unnest(old.new) AS u (token)
    WHERE NOT (old.thread_key = old.new_thread_key AND u.token = ANY(old.tokens)) AND {is_indexed}
)
UPDATE {schema}.message AS m
SET thread_key = g.thread_key, role = g.role, type = g.type, content = g.content, metadata = g.metadata, tokens = g.tokens
FROM given AS g
WHERE m.id = g.id

-- name: delete_messages
-- The messages with their positions; returns nothing.
WITH gone AS (
    DELETE FROM {schema}.message
    WHERE ctid = ANY(ARRAY(
        SELECT m.ctid
        FROM unnest(:ids::text[]) AS w (id)
        CROSS JOIN LATERAL (SELECT x.ctid FROM {schema}.message AS x WHERE x.id = w.id OFFSET 0) AS m
    ))
    RETURNING id, thread_key, created_at, seq, tokens
)
DELETE FROM {schema}.position
WHERE ctid = ANY(ARRAY(
    SELECT p.ctid
    FROM gone CROSS JOIN unnest(gone.tokens) AS u (token)
    CROSS JOIN LATERAL (
        SELECT p.ctid
        FROM {schema}.position AS p
        WHERE p.thread_key = gone.thread_key AND p.token = u.token
        AND p.created_at = gone.created_at AND p.seq = gone.seq AND p.id = gone.id
        OFFSET 0
    ) AS p
))

-- name: lock_threads
-- In the order of their ids, so that two calls never wait for each other.
SELECT key FROM {schema}.thread WHERE key = ANY(ARRAY(SELECT t.key FROM {in_given_threads})) ORDER BY id FOR NO KEY UPDATE

-- name: lock_threads_of
-- The threads that messages are in, and others by id.
SELECT key
FROM {schema}.thread
WHERE key = ANY(ARRAY(
    SELECT m.thread_key FROM {messages_given}
    UNION
    SELECT t.key FROM {in_given_threads}
))
ORDER BY id
FOR NO KEY UPDATE

-- name: owners
SELECT t.id, r.id, t.key, t.resource_key
FROM {in_given_threads}

-- name: placements
-- Where messages are, without their bodies.
SELECT m.id, t.id, r.id, m.created_at, m.seq, m.thread_key
FROM {messages_given}

-- name: stored_messages
SELECT {message_columns}, m.thread_key, m.resource_key
FROM {messages_given}

-- name: copy_messages
-- The newest messages within bounds, with new ids and seq by rank, and their positions: bodies go from table to table.
WITH chosen AS MATERIALIZED (
    SELECT c.id, gen_random_uuid()::text AS new_id, row_number() OVER (ORDER BY c.created_at, c.seq, c.id) - 1 AS rank
    FROM (
        SELECT m.created_at, m.seq, m.id
        FROM {schema}.message AS m
        WHERE m.thread_key = :source::bigint AND {within} {chosen}
        ORDER BY m.created_at DESC, m.seq DESC, m.id DESC
        LIMIT :limit
    ) AS c
), copied AS (
    INSERT INTO {schema}.message
        (id, thread_key, resource_key, role, type, content, metadata, tokens, created_at, seq)
    SELECT
        c.new_id, :key::bigint, :resource_key::bigint, m.role, m.type, m.content, m.metadata, m.tokens, m.created_at,
        :seq::bigint + c.rank
    FROM chosen AS c CROSS JOIN LATERAL (SELECT m.* FROM {schema}.message AS m WHERE m.id = c.id OFFSET 0) AS m
), indexed AS (
    INSERT INTO {schema}.position (thread_key, resource_key, token, created_at, seq, id)
    SELECT :key::bigint, :resource_key::bigint, u.token, m.created_at, :seq::bigint + c.rank, c.new_id
    FROM chosen AS c
    CROSS JOIN LATERAL (SELECT m.* FROM {schema}.message AS m WHERE m.id = c.id OFFSET 0) AS m
    CROSS JOIN unnest(m.tokens) AS u (token)
    WHERE {is_indexed}
)
SELECT id, new_id FROM chosen ORDER BY rank

-- name: chosen
AND m.id = ANY(:ids::text[])

-- name: count_messages_of_thread
UPDATE {schema}.thread SET message_count = :count WHERE key = :key

-- name: messages_of_thread
SELECT {message_columns}
FROM {schema}.message AS m
JOIN {schema}.thread AS t ON t.key = m.thread_key
JOIN {schema}.resource AS r ON r.key = m.resource_key
WHERE m.thread_key = :key
ORDER BY m.created_at, m.seq, m.id

-- name: in_all
-- The scope of all threads.
(SELECT) AS a

-- name: thread_page
SELECT {thread_columns}
FROM {scopes}
CROSS JOIN LATERAL (
    SELECT t.*
    FROM {schema}.thread AS t
    WHERE {of_scope} (t.{order_by}, t.id) > (:after_at, :after_id) AND (t.{order_by}, t.id) < (:before_at, :before_id)
    {residual}
    ORDER BY t.{order_by} {direction}, t.id {direction}
    LIMIT :limit OFFSET :skip
) AS t
{owner}
WHERE {where}
ORDER BY t.{order_by} {direction}, t.id {direction}

-- name: owner_of_thread
CROSS JOIN LATERAL (SELECT x.id FROM {schema}.resource AS x WHERE x.key = t.resource_key OFFSET 0) AS r

-- name: thread_matches
-- By creation under points: ranges in order, merged. Else every match is read and sorted.
SELECT {thread_columns}
FROM (
    SELECT b.at, b.id
    FROM {scopes} {points}
    CROSS JOIN LATERAL (
        SELECT {at} AS at, p.id
        FROM {schema}.thread_position AS p {candidate}
        WHERE {of_scope} {token} AND ({at}, p.id) > (:after_at, :after_id) AND ({at}, p.id) < (:before_at, :before_id)
        {residual}
        ORDER BY {at} {direction}, p.id {direction}
        {branch_limit}
    ) AS b
    WHERE {where} {as_planned}
    ORDER BY b.at {direction}, b.id {direction}
    {merged_limit}
) AS f
CROSS JOIN LATERAL (SELECT t.* FROM {schema}.thread AS t WHERE t.id = f.id OFFSET 0) AS t
{owner}
ORDER BY f.at {direction}, f.id {direction}

-- name: candidate_thread
CROSS JOIN LATERAL (
    SELECT t.tokens, t.updated_at FROM {schema}.thread AS t WHERE t.id = p.id OFFSET 0
) AS t

-- name: count_thread_page
SELECT coalesce(sum(b.n), 0)::bigint
FROM {scopes}
CROSS JOIN LATERAL (SELECT count(*) AS n FROM {schema}.thread AS t WHERE {of_scope} TRUE {residual}) AS b
WHERE {where}

-- name: count_thread_matches
SELECT coalesce(sum(b.n), 0)::bigint
FROM {scopes} {points}
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM {schema}.thread_position AS p {candidate} WHERE {of_scope} {token} {residual}
) AS b
WHERE {where} {as_planned}

-- name: thread_probe
SELECT k.candidate, b.n, b.created_at, 0
FROM {scopes}
CROSS JOIN unnest(:candidates::bigint[], :tokens::text[]) AS k (candidate, token)
CROSS JOIN LATERAL (
    SELECT *
    FROM (
        SELECT p.created_at, row_number() OVER (ORDER BY p.created_at {direction}, p.id {direction}) AS n
        FROM {schema}.thread_position AS p
        WHERE {of_scope} p.token = k.token
        ORDER BY p.created_at {direction}, p.id {direction}
        LIMIT :enough
    ) AS p
    ORDER BY p.n DESC
    LIMIT 1
) AS b
WHERE {where}

-- name: resource_columns
-- A resource as _codec.resource reads it.
r.id, r.working_memory, r.metadata, r.revision, r.created_at, r.updated_at

-- name: resource_by_id
-- One without times has no record of its own.
SELECT {resource_columns} FROM {schema}.resource AS r WHERE r.id = :id AND r.created_at IS NOT NULL

-- name: lock_resource
-- Threads may be made under it meanwhile.
SELECT {resource_columns} FROM {schema}.resource AS r WHERE r.id = :id FOR NO KEY UPDATE

-- name: seed_resource
INSERT INTO {schema}.resource (id) VALUES (:id) ON CONFLICT (id) DO NOTHING

-- name: put_resource
INSERT INTO {schema}.resource (id, working_memory, metadata, revision, created_at, updated_at)
VALUES (:id, :working_memory, :metadata, :revision, :created_at, :updated_at)
ON CONFLICT (id) DO UPDATE SET
    working_memory = excluded.working_memory,
    metadata = excluded.metadata,
    revision = excluded.revision,
    created_at = excluded.created_at,
    updated_at = excluded.updated_at

-- name: list_resources
SELECT {resource_columns}
FROM {schema}.resource AS r
WHERE r.id > :after AND r.created_at IS NOT NULL
ORDER BY r.id
LIMIT :limit OFFSET :skip

-- name: count_resources
SELECT count(*) FROM {schema}.resource WHERE created_at IS NOT NULL

-- name: lock_resource_to_delete
SELECT key, created_at IS NOT NULL FROM {schema}.resource WHERE id = :id FOR UPDATE

-- name: lock_threads_of_resource
SELECT key FROM {schema}.thread WHERE resource_key = :key ORDER BY id FOR UPDATE

-- name: delete_positions_of_resource
DELETE FROM {schema}.position WHERE resource_key = :key

-- name: delete_messages_of_resource
DELETE FROM {schema}.message WHERE resource_key = :key

-- name: delete_thread_positions_of_resource
DELETE FROM {schema}.thread_position WHERE resource_key = :key

-- name: delete_threads_of_resource
DELETE FROM {schema}.thread WHERE resource_key = :key

-- name: delete_resource
DELETE FROM {schema}.resource WHERE key = :key

-- name: memory_columns
-- An archive memory as _codec.memory reads it.
m.id, m.content, m.folded, m.pinned, m.actor_type, m.actor_id, m.created_at

-- name: given_memories
SELECT *
FROM json_to_recordset(:memories::json) AS m (
    id bigint, content text, folded text, pinned boolean, actor_type text, actor_id text, created_at bigint
)

-- name: insert_memories
-- All, or none where an id is taken.
INSERT INTO {schema}.memory (id, content, folded, pinned, actor_type, actor_id, created_at)
SELECT *
FROM ({given_memories}) AS g
WHERE NOT EXISTS (SELECT FROM {schema}.memory AS m WHERE m.id = ANY(:ids::bigint[]))

-- name: replace_memories
INSERT INTO {schema}.memory (id, content, folded, pinned, actor_type, actor_id, created_at)
{given_memories}
ORDER BY id
ON CONFLICT (id) DO UPDATE SET
    content = excluded.content,
    folded = excluded.folded,
    pinned = excluded.pinned,
    actor_type = excluded.actor_type,
    actor_id = excluded.actor_id,
    created_at = excluded.created_at

-- name: taken_memory
SELECT w.id
FROM unnest(:ids::bigint[]) WITH ORDINALITY AS w (id, place)
WHERE EXISTS (SELECT FROM {schema}.memory AS m WHERE m.id = w.id)
ORDER BY w.place
LIMIT 1

-- name: memories_of
-- One limited branch an actor, merged.
SELECT {memory_columns}
FROM unnest(:types::text[], :ids::text[]) AS a (type, id)
CROSS JOIN LATERAL (
    SELECT m.*
    FROM {schema}.memory AS m
    WHERE m.actor_type = a.type AND m.actor_id = a.id
    AND m.created_at <= :at AND (m.created_at < :at OR m.id > :after_id) {recall}
    ORDER BY m.created_at DESC, m.id
    LIMIT :enough
) AS m
ORDER BY m.created_at DESC, m.id
LIMIT :limit OFFSET :skip

-- name: memories
SELECT {memory_columns}
FROM {schema}.memory AS m
WHERE m.created_at <= :at AND (m.created_at < :at OR m.id > :after_id) {recall}
ORDER BY m.created_at DESC, m.id
LIMIT :limit OFFSET :skip

-- name: count_memories_of
SELECT count(*)
FROM unnest(:types::text[], :ids::text[]) AS a (type, id)
JOIN {schema}.memory AS m ON m.actor_type = a.type AND m.actor_id = a.id
WHERE TRUE {recall}

-- name: count_memories
SELECT count(*) FROM {schema}.memory AS m WHERE TRUE {recall}

-- name: unpinned
AND NOT m.pinned

-- name: containing
-- The pattern is for a trigram index where there is one; strpos knows no special characters and decides.
AND m.folded LIKE :pattern AND strpos(m.folded, :folded) > 0

-- name: allow_bitmaps
-- A trigram index gives bitmaps only, to be sorted, and is worth it for some texts and not for others.
SELECT
    set_config('enable_bitmapscan', 'on', TRUE),
    set_config('enable_sort', 'on', TRUE),
    set_config('plan_cache_mode', 'force_custom_plan', TRUE)

-- name: pin_memory
UPDATE {schema}.memory AS m SET pinned = :pinned WHERE m.id = :id RETURNING {memory_columns}

-- name: delete_memories
DELETE FROM {schema}.memory WHERE actor_type = :type AND actor_id = :actor AND id = ANY(:ids::bigint[])

-- name: delete_actor_memories
DELETE FROM {schema}.memory WHERE actor_type = :type AND actor_id = :actor

-- name: lock_indexed_keys
-- Whoever writes tokens holds the lock of a thread, or waits here.
LOCK TABLE {schema}.thread, {schema}.indexed_key IN EXCLUSIVE MODE

-- name: choose_indexed_keys
WITH gone AS (DELETE FROM {schema}.indexed_key WHERE key <> ALL(:keys::text[]))
INSERT INTO {schema}.indexed_key SELECT u.key FROM unnest(:keys::text[]) AS u (key) ON CONFLICT (key) DO NOTHING

-- name: drop_positions
DELETE FROM {schema}.position AS u WHERE NOT {is_indexed}

-- name: index_messages
INSERT INTO {schema}.position (thread_key, resource_key, token, created_at, seq, id)
SELECT m.thread_key, m.resource_key, u.token, m.created_at, m.seq, m.id
FROM {schema}.message AS m CROSS JOIN unnest(m.tokens) AS u (token)
WHERE {is_indexed}
ON CONFLICT (thread_key, token, created_at, seq, id) DO NOTHING

-- name: drop_thread_positions
DELETE FROM {schema}.thread_position AS u WHERE NOT {is_indexed}

-- name: index_threads
INSERT INTO {schema}.thread_position (resource_key, token, created_at, id)
SELECT t.resource_key, u.token, t.created_at, t.id
FROM {schema}.thread AS t CROSS JOIN unnest(t.tokens) AS u (token)
WHERE {is_indexed}
ON CONFLICT (token, created_at, id) DO NOTHING

-- name: state
-- What opening needs to know, of tables that may not be there yet. The catalog is asked, not to_regclass, which may
-- answer from a cache that is older than the lock of the migrations.
SELECT
    current_setting('server_encoding'),
    current_setting('server_version_num')::int,
    EXISTS (
        SELECT
        FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = :schema AND c.relname = 'migration'
    )

-- name: version
SELECT coalesce(max(version), 0) FROM {schema}.migration

-- name: lock_migrations
SELECT pg_advisory_xact_lock(hashtextextended('threadkeep ' || :schema, 0))

-- name: has_schema
SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = :schema

-- name: create_schema
CREATE SCHEMA {schema}

-- name: create_migration
CREATE TABLE IF NOT EXISTS {schema}.migration (
    version int PRIMARY KEY,
    token_version int NOT NULL,
    applied_at bigint NOT NULL
)

-- name: record_migration
INSERT INTO {schema}.migration (version, token_version, applied_at) VALUES (:version, :token_version, :now)

-- name: trigram_state
-- Whether the text index is there, and the schema of the extension it needs, if that is there.
SELECT
    to_regclass('{schema}.memory_folded') IS NOT NULL,
    (SELECT quote_ident(n.nspname) FROM pg_catalog.pg_extension AS e
    JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm')

-- name: create_trigrams
CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public

-- name: create_text_index
-- Without a list of pending entries, which every recall would read.
CREATE INDEX {online} IF NOT EXISTS memory_folded ON {schema}.memory USING gin (folded {trigrams}.gin_trgm_ops) WITH (fastupdate = off)
