-- expands: the order in which clusters and nodepools became due
-- No checksum covers the columns: a program that does not know them yet writes the row, and leaves
-- them as they were.
ALTER TABLE fleet ADD COLUMN due_seq BIGINT NOT NULL DEFAULT 0; -- 0 = not since this step
ALTER TABLE fleet ADD COLUMN trace TEXT NOT NULL DEFAULT ''; -- traceparent of the same change
ALTER TABLE resource ADD COLUMN trace TEXT NOT NULL DEFAULT ''; -- traceparent of the operation
CREATE INDEX fleet_due ON fleet (due_seq) WHERE due_seq > 0;

-- The same of those that were removed lately.
CREATE TABLE due_gone (
  seq        /*sqlite: INTEGER PRIMARY KEY*/ /*postgres: BIGINT PRIMARY KEY*/, -- as fleet.due_seq
  id         TEXT   NOT NULL,
  kind       BIGINT NOT NULL,                -- 1 cluster, 2 nodepool
  owner_id   TEXT   NOT NULL,
  generation BIGINT NOT NULL,
  labels     TEXT   NOT NULL,
  at_us      BIGINT NOT NULL,                -- when it became due
  gone_us    BIGINT NOT NULL,                -- when it was removed
  trace      TEXT   NOT NULL                 -- as fleet.trace
);
CREATE INDEX due_gone_by_time ON due_gone (gone_us);

-- The highest number of those that were forgotten, as history_floor.
CREATE TABLE due_floor (
  one BIGINT NOT NULL PRIMARY KEY,           -- 1: there is one row
  seq BIGINT NOT NULL
);
