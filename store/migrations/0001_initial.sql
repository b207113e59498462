-- PostgreSQL calls it otherwise.
/*postgres: CREATE DOMAIN blob AS bytea; */
-- Portable subset: TEXT, BIGINT, BLOB. Times are microseconds since 1970; 0 and '' mean "none".
-- A comment that begins with an engine's name and a colon is SQL for that engine alone.

-- A HyperFleet resource (a cluster, or a nodepool that it owns). Documents are compact JSON text.
CREATE TABLE fleet (
  -- Its number here: short where an id is long. It ends each index of this table.
  seq           /*sqlite: INTEGER PRIMARY KEY*/ /*postgres: BIGINT PRIMARY KEY*/,
  id            TEXT   NOT NULL UNIQUE,
  kind          BIGINT NOT NULL,             -- 1 cluster, 2 nodepool
  owner_id      TEXT   NOT NULL DEFAULT '',  -- the cluster of a nodepool
  name          TEXT   NOT NULL,
  generation    BIGINT NOT NULL,
  spec          TEXT   NOT NULL,
  labels        TEXT   NOT NULL,
  conditions    TEXT   NOT NULL,
  ready         BIGINT NOT NULL DEFAULT 0,   -- 1 when the aggregated Ready is True
  ready_seen_us BIGINT NOT NULL DEFAULT 0,   -- last_updated_time of Ready; not for a remote
  told          BIGINT NOT NULL DEFAULT 0,   -- hfd_fleet.mark: judged with these settings; 0 = not
  created_us    BIGINT NOT NULL,
  updated_us    BIGINT NOT NULL,
  deleted_us    BIGINT NOT NULL DEFAULT 0,
  created_by    TEXT   NOT NULL,
  updated_by    TEXT   NOT NULL,
  deleted_by    TEXT   NOT NULL DEFAULT ''
);
-- A name is unique among what is not being deleted.
CREATE UNIQUE INDEX fleet_name ON fleet (kind, owner_id, name) WHERE deleted_us = 0;
CREATE INDEX fleet_owner ON fleet (owner_id, created_us) WHERE owner_id <> '';
CREATE INDEX fleet_created ON fleet (kind, created_us);
CREATE INDEX fleet_named ON fleet (kind, name, created_us);
CREATE INDEX fleet_pending ON fleet (created_us) WHERE ready = 0;
-- Sentinels ask for resources that no report has confirmed for a while.
CREATE INDEX fleet_ready ON fleet (kind, ready, ready_seen_us, created_us);

-- Search keys of lists: copies of labels and of conditions' status, in the order of a list's page.
-- Only values that seldom change are copied: a confirming report touches neither table.
CREATE TABLE fleet_label (
  kind          BIGINT NOT NULL,
  key           TEXT   NOT NULL,
  value         TEXT   NOT NULL,
  created_us    BIGINT NOT NULL,             -- of the resource, as kind
  fleet_seq     BIGINT NOT NULL,
  PRIMARY KEY (kind, key, value, created_us, fleet_seq)
) /*sqlite: WITHOUT ROWID */;

CREATE TABLE fleet_condition (
  kind          BIGINT NOT NULL,
  type          TEXT   NOT NULL,
  status        TEXT   NOT NULL,
  created_us    BIGINT NOT NULL,             -- of the resource, as kind
  fleet_seq     BIGINT NOT NULL,
  PRIMARY KEY (kind, type, status, created_us, fleet_seq)
) /*sqlite: WITHOUT ROWID */;

-- Totals of lists that would take long to count: by kind, and by kind and condition or label.
-- No total is 0: its row is removed then.
CREATE TABLE fleet_count (
  kind  BIGINT NOT NULL,
  field BIGINT NOT NULL,                     -- 0 the whole kind, 1 a condition, 2 a label
  name  TEXT   NOT NULL,                     -- the condition's type, the label's key
  value TEXT   NOT NULL,                     -- its status, its value
  n     BIGINT NOT NULL,
  PRIMARY KEY (kind, field, name, value)
) /*sqlite: WITHOUT ROWID */;

-- The last report of each adapter.
CREATE TABLE report (
  fleet_id            TEXT   NOT NULL,
  adapter             TEXT   NOT NULL,
  observed_generation BIGINT NOT NULL,
  observed_us         BIGINT NOT NULL,       -- last_report_time
  received_us         BIGINT NOT NULL,       -- 0: received before the present operation
  created_us          BIGINT NOT NULL,
  conditions          TEXT   NOT NULL,
  data                TEXT   NOT NULL,       -- without data.secrets' values
  metadata            TEXT   NOT NULL DEFAULT '',
  secrets             BLOB,                  -- data.secrets, sealed
  PRIMARY KEY (fleet_id, adapter)
);

-- A driver resource.
CREATE TABLE resource (
  guresid         TEXT   NOT NULL PRIMARY KEY,
  type            TEXT   NOT NULL,           -- as received
  kind            BIGINT NOT NULL,           -- 1 cluster, 2 nodepool
  state           BIGINT NOT NULL,           -- enum hfd_state
  incarnation     TEXT   NOT NULL,
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
  op_plan         TEXT   NOT NULL DEFAULT ''  -- when polls pay; '' once the operation is in `past`
);

-- The parts of driver resources, and the generation that the driver last wrote to each.
CREATE TABLE part (
  guresid    TEXT   NOT NULL,
  fleet_id   TEXT   NOT NULL,
  kind       BIGINT NOT NULL,
  name       TEXT   NOT NULL,
  generation BIGINT NOT NULL,
  leaving    BIGINT NOT NULL DEFAULT 0,      -- 1 when the last input does not have it any more
  pending    BIGINT NOT NULL DEFAULT 0,      -- 1 while the remote has not taken the last change
  PRIMARY KEY (guresid, fleet_id)
) /*sqlite: WITHOUT ROWID */;
CREATE INDEX part_fleet ON part (fleet_id);

-- The newest events of a driver resource. Its own row says when it was made.
CREATE TABLE history (
  guresid     TEXT   NOT NULL,
  seq         BIGINT NOT NULL,               -- from 1 on
  incarnation TEXT   NOT NULL,
  at_us       BIGINT NOT NULL,
  from_state  BIGINT NOT NULL,               -- enum hfd_state
  to_state    BIGINT NOT NULL,
  what        TEXT   NOT NULL,
  generation  BIGINT NOT NULL,               -- of its cluster or nodepool in HyperFleet
  text        TEXT   NOT NULL,
  PRIMARY KEY (guresid, seq)
) /*sqlite: WITHOUT ROWID */;

-- The newest operations that ended, a bounded number for each key. Hints learn from them.
CREATE TABLE past (
  kind       BIGINT NOT NULL,                -- as resource.kind
  op         BIGINT NOT NULL,                -- enum hfd_op
  size       BIGINT NOT NULL,                -- how many parts, in binary digits
  ended_us   BIGINT NOT NULL,                -- rises within a key, even when the clock was set back
  took_us    BIGINT NOT NULL,
  ending     BIGINT NOT NULL,                -- enum hfd_ending
  milestones TEXT   NOT NULL,                -- "c/dns=61000": milliseconds since the start
  PRIMARY KEY (kind, op, size, ended_us)
) /*sqlite: WITHOUT ROWID */;

-- Forecasts for operations that start: made on the first request, removed when the past changes.
CREATE TABLE forecast (
  kind        BIGINT NOT NULL,
  op          BIGINT NOT NULL,
  size        BIGINT NOT NULL,
  prior_us    BIGINT NOT NULL,               -- the settings that it was made with
  deadline_us BIGINT NOT NULL,
  plan        TEXT   NOT NULL,
  PRIMARY KEY (kind, op, size)
) /*sqlite: WITHOUT ROWID */;

-- The work against a remote HyperFleet for a driver resource. Empty with an embedded one.
CREATE TABLE upstream (
  guresid     TEXT   NOT NULL PRIMARY KEY,
  goal        BIGINT NOT NULL,               -- enum hfd_backend_goal
  watched     BIGINT NOT NULL,               -- 0, 1 in progress and only looked at, 2 settled
  due_us      BIGINT NOT NULL,
  checked_us  BIGINT NOT NULL,
  full_us     BIGINT NOT NULL,
  unsure_us   BIGINT NOT NULL,
  behind_us   BIGINT NOT NULL,
  tries       BIGINT NOT NULL,
  refusals    BIGINT NOT NULL,
  later_names BIGINT NOT NULL,
  error       TEXT   NOT NULL
);
CREATE INDEX upstream_due ON upstream (watched, due_us);
CREATE INDEX upstream_absent ON upstream (checked_us) WHERE goal = 4;

-- Orphans at a remote HyperFleet, as they were last seen. Empty with an embedded one.
CREATE TABLE stray (
  id          TEXT   NOT NULL PRIMARY KEY,
  kind        BIGINT NOT NULL,               -- as fleet.kind
  owner_id    TEXT   NOT NULL,
  guresid     TEXT   NOT NULL,               -- of its label
  name        TEXT   NOT NULL,
  generation  BIGINT NOT NULL,
  ready       BIGINT NOT NULL,
  created_us  BIGINT NOT NULL,
  deleted_us  BIGINT NOT NULL,
  created_by  TEXT   NOT NULL,
  seen_us     BIGINT NOT NULL,
  wanted_us   BIGINT NOT NULL,               -- when its removal was ordered; 0 = not
  due_us      BIGINT NOT NULL,               -- when a pass looks at it alone
  tries       BIGINT NOT NULL,
  error       TEXT   NOT NULL
);
CREATE INDEX stray_due ON stray (due_us);
CREATE INDEX stray_listed ON stray (kind, guresid, created_us, id);
CREATE INDEX stray_owner ON stray (owner_id) WHERE owner_id <> '';
