-- One history of all actions, in one order. A resource has the number of its creation: that action
-- is read from its row, and is written as an entry only when the row goes. The next migration fills
-- the sums of rows.
CREATE TABLE moved (
  guresid TEXT   NOT NULL,
  old     BIGINT NOT NULL,                   -- its seq in the old table; 0 the creation
  seq     BIGINT NOT NULL,
  PRIMARY KEY (guresid, old)
);
INSERT INTO moved (guresid, old, seq)
  SELECT guresid, old, ROW_NUMBER() OVER (ORDER BY at_us, guresid, old) FROM (
    SELECT guresid, 0 AS old, created_us AS at_us FROM resource
    UNION ALL SELECT guresid, seq, at_us FROM history) AS every_action;

ALTER TABLE resource RENAME TO resource_before;
CREATE TABLE resource (
  -- of its creation or adoption, as history.seq
  seq             /*sqlite: INTEGER PRIMARY KEY*/ /*postgres: BIGINT PRIMARY KEY*/,
  guresid         TEXT   NOT NULL UNIQUE,
  type            TEXT   NOT NULL,           -- as received
  kind            BIGINT NOT NULL,           -- 1 cluster, 2 nodepool
  state           BIGINT NOT NULL,           -- enum hfd_state
  incarnation     TEXT   NOT NULL,
  instance        BIGINT NOT NULL,           -- as history.instance: the one that goes on
  cluster_id      TEXT   NOT NULL,
  digest          BLOB   NOT NULL,
  raw_digest      BLOB   NOT NULL,
  cookie          TEXT   NOT NULL,
  op_started_us   BIGINT NOT NULL,
  op_estimate_us  BIGINT NOT NULL,
  op_deadline_us  BIGINT NOT NULL,
  fail_code       TEXT   NOT NULL DEFAULT '',
  fail_message    TEXT   NOT NULL DEFAULT '',
  output          TEXT   NOT NULL DEFAULT '', -- resource.values as JSON once ready
  secrets         BLOB,                       -- resource.secrets, sealed
  created_us      BIGINT NOT NULL,
  updated_us      BIGINT NOT NULL,
  degraded        BIGINT NOT NULL DEFAULT 0,  -- 1 from Degraded until it is Healthy again
  op              BIGINT NOT NULL DEFAULT 0,  -- enum hfd_op: the last one
  op_size         BIGINT NOT NULL DEFAULT 0,  -- as past.size
  op_milestones   TEXT   NOT NULL DEFAULT '', -- as past.milestones, while it goes on
  op_plan         TEXT   NOT NULL DEFAULT '', -- when polls pay; '' once the operation is in `past`
  op_waits        TEXT   NOT NULL DEFAULT '', -- what the operation waits for, while it goes on
  op_usual        TEXT   NOT NULL DEFAULT '', -- when adapters usually are done, as milestones
  sum             BIGINT
);
INSERT INTO resource (seq, guresid, type, kind, state, incarnation, instance, cluster_id, digest,
    raw_digest, cookie, op_started_us, op_estimate_us, op_deadline_us, fail_code, fail_message,
    output, secrets, created_us, updated_us, degraded, op, op_size, op_milestones, op_plan,
    op_waits, op_usual)
  SELECT m.seq, r.guresid, r.type, r.kind, r.state, r.incarnation,
      COALESCE((SELECT MAX(n.seq) FROM history h JOIN moved n ON n.guresid = h.guresid AND
          n.old = h.seq WHERE h.guresid = r.guresid AND
          h.what IN ('update', 'retarget', 'retry', 'adopted')), m.seq),
      r.cluster_id, r.digest, r.raw_digest, r.cookie, r.op_started_us, r.op_estimate_us,
      r.op_deadline_us, r.fail_code, r.fail_message, r.output, r.secrets, r.created_us,
      r.updated_us, r.degraded, r.op, r.op_size, r.op_milestones, r.op_plan, r.op_waits,
      r.op_usual
    FROM resource_before r JOIN moved m ON m.guresid = r.guresid AND m.old = 0 ORDER BY m.seq;
DROP TABLE resource_before;

ALTER TABLE history RENAME TO history_before;
CREATE TABLE history (
  -- the order of all actions, of all resources
  seq         /*sqlite: INTEGER PRIMARY KEY*/ /*postgres: BIGINT PRIMARY KEY*/,
  about       BIGINT NOT NULL,               -- 0 a driver resource; 1 a cluster that none has
  id          TEXT   NOT NULL,               -- its GUResID; the cluster's id
  incarnation TEXT   NOT NULL,
  instance    BIGINT NOT NULL,               -- seq of the action that asked for the present work;
                                             -- of a cluster: the generation
  at_us       BIGINT NOT NULL,
  from_state  BIGINT NOT NULL,               -- enum hfd_state
  to_state    BIGINT NOT NULL,
  what        TEXT   NOT NULL,
  generation  BIGINT NOT NULL,               -- of its cluster or nodepool in HyperFleet
  text        TEXT   NOT NULL
);
CREATE INDEX history_of ON history (about, id, seq);
INSERT INTO history (seq, about, id, incarnation, instance, at_us, from_state, to_state, what,
    generation, text)
  SELECT m.seq, 0, h.guresid, h.incarnation,
      COALESCE((SELECT MAX(n.seq) FROM history_before b JOIN moved n ON n.guresid = b.guresid AND
          n.old = b.seq WHERE b.guresid = h.guresid AND b.seq <= h.seq AND
          b.what IN ('update', 'retarget', 'retry', 'adopted')), c.seq),
      h.at_us, h.from_state, h.to_state, h.what, h.generation, h.text
    FROM history_before h JOIN moved m ON m.guresid = h.guresid AND m.old = h.seq
      JOIN moved c ON c.guresid = h.guresid AND c.old = 0 ORDER BY m.seq;
DROP TABLE history_before;
DROP TABLE moved;

-- The highest number of an entry that was removed. New numbers are above it. A reader that goes on
-- from an earlier one has missed entries.
CREATE TABLE history_floor (
  one BIGINT NOT NULL PRIMARY KEY,           -- 1: there is one row
  seq BIGINT NOT NULL
);

-- What was removed lately. Its history is kept as long as this row.
CREATE TABLE tombstone (
  -- of the removal in the history
  seq         /*sqlite: INTEGER PRIMARY KEY*/ /*postgres: BIGINT PRIMARY KEY*/,
  about       BIGINT NOT NULL,               -- as history.about
  id          TEXT   NOT NULL,
  removed_us  BIGINT NOT NULL,
  created_us  BIGINT NOT NULL,
  kind        BIGINT NOT NULL,               -- as resource.kind
  type        TEXT   NOT NULL,               -- of the driver resource
  incarnation TEXT   NOT NULL,
  cluster_id  TEXT   NOT NULL,
  name        TEXT   NOT NULL,               -- of its cluster or nodepool
  provider    TEXT   NOT NULL                -- of a cluster of its own: spec.platform.type
);
CREATE UNIQUE INDEX tombstone_of ON tombstone (about, id);
