-- Portable subset: TEXT, BIGINT, BLOB; times are microseconds since 1970; 0 and '' mean "none". A comment that begins with an engine's
-- name and a colon is text for that engine alone.

-- A HyperFleet resource (a cluster, or a nodepool that it owns). Documents are compact JSON text.
CREATE TABLE fleet (
  seq           /*sqlite: INTEGER PRIMARY KEY*/, -- its number here, short where an id is long; it ends each index of this table
  id            TEXT   NOT NULL UNIQUE,
  kind          BIGINT NOT NULL,             -- 1 cluster, 2 nodepool
  owner_id      TEXT   NOT NULL DEFAULT '',  -- the cluster of a nodepool
  name          TEXT   NOT NULL,
  generation    BIGINT NOT NULL,
  spec          TEXT   NOT NULL,
  labels        TEXT   NOT NULL,
  conditions    TEXT   NOT NULL,
  ready         BIGINT NOT NULL DEFAULT 0,   -- 1 when the aggregated Ready is True: found by the demo adapters
  ready_seen_us BIGINT NOT NULL DEFAULT 0,   -- the last_updated_time of Ready; of a remote HyperFleet's it is not kept
  told          BIGINT NOT NULL DEFAULT 0,   -- the settings by which its reports were last judged and changed nothing more; 0 = not so
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
-- Sentinels ask for those that nobody has confirmed for a while.
CREATE INDEX fleet_ready ON fleet (kind, ready, ready_seen_us, created_us);

-- What lists are searched by: copies of the searchable labels, and of the conditions' status, of fleet rows, in the order that gives the
-- page of a list as it stands. Only what seldom changes is copied: a report that confirms what is known leaves both in peace.
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

-- Totals of lists that would be long to count: of a kind, and of a kind by condition or by label. None is 0: its row is gone then.
CREATE TABLE fleet_count (
  kind  BIGINT NOT NULL,
  field BIGINT NOT NULL,                     -- 0 the whole kind (name and value empty), 1 a condition, 2 a label
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
  received_us         BIGINT NOT NULL,       -- 0: before the operation of its driver resource that is under way
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

-- The HyperFleet resources that a driver resource made, and the generation that it last wrote to each.
CREATE TABLE part (
  guresid    TEXT   NOT NULL,
  fleet_id   TEXT   NOT NULL,
  kind       BIGINT NOT NULL,
  name       TEXT   NOT NULL,
  generation BIGINT NOT NULL,
  leaving    BIGINT NOT NULL DEFAULT 0,      -- 1 when the last input no longer has it: kept until HyperFleet has removed it
  pending    BIGINT NOT NULL DEFAULT 0,      -- 1 while a remote HyperFleet has not taken what was last asked for
  PRIMARY KEY (guresid, fleet_id)
) /*sqlite: WITHOUT ROWID */;
CREATE INDEX part_fleet ON part (fleet_id);

-- What happened to a driver resource, the newest of it. That it was made is told by its own row.
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

-- What hints are learned from: the newest operations that ended, of each key a bounded number.
CREATE TABLE past (
  kind       BIGINT NOT NULL,                -- as resource.kind
  op         BIGINT NOT NULL,                -- enum hfd_op
  size       BIGINT NOT NULL,                -- how many parts, in binary digits
  ended_us   BIGINT NOT NULL,                -- rises within a key, even when the clock was set back
  took_us    BIGINT NOT NULL,
  ending     BIGINT NOT NULL,                -- enum hfd_ending
  milestones TEXT   NOT NULL,                -- "c/dns=61000 n/validation=65000": adapters' parts, milliseconds since the start
  PRIMARY KEY (kind, op, size, ended_us)
) /*sqlite: WITHOUT ROWID */;

-- What the past says of an operation that starts; made when it is first asked for, removed when the past changes.
CREATE TABLE forecast (
  kind        BIGINT NOT NULL,
  op          BIGINT NOT NULL,
  size        BIGINT NOT NULL,
  prior_us    BIGINT NOT NULL,               -- the settings that it was made with
  deadline_us BIGINT NOT NULL,
  plan        TEXT   NOT NULL,
  PRIMARY KEY (kind, op, size)
) /*sqlite: WITHOUT ROWID */;

-- What is to be carried out against a remote HyperFleet for a driver resource, and when; nothing with an embedded one.
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

-- Clusters and nodepools of ours in a remote HyperFleet that no driver resource has, as they were seen last; nothing with an embedded one.
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
  wanted_us   BIGINT NOT NULL,               -- when somebody asked for its deletion; 0 nobody did
  due_us      BIGINT NOT NULL,               -- when it is to be looked at by itself
  tries       BIGINT NOT NULL,
  error       TEXT   NOT NULL
);
CREATE INDEX stray_due ON stray (due_us);
CREATE INDEX stray_listed ON stray (kind, guresid, created_us, id);
CREATE INDEX stray_owner ON stray (owner_id) WHERE owner_id <> '';
