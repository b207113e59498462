-- What metrics and the status page count. The totals of driver resources by type and state are in
-- fleet_count, as field 3; a type there has no organisation in front.
INSERT INTO fleet_count (kind, field, name, value, n)
  SELECT kind, 3,
      substr(type, /*sqlite: instr(type, '/')*/ /*postgres: strpos(type, '/')*/ + 1),
      CAST(state AS TEXT), count(*)
    FROM resource GROUP BY 1, 3, 4;
-- The operations in progress.
CREATE INDEX resource_operating ON resource (op_deadline_us, state, op_started_us)
  WHERE state IN (1, 2, 5);
-- Since when Reconciled is False; 0: it is not, or a remote HyperFleet aggregates.
ALTER TABLE fleet ADD COLUMN pending_us BIGINT NOT NULL DEFAULT 0;
UPDATE fleet SET pending_us = updated_us, sum = NULL, doc_sum = NULL
  WHERE ready = 0 AND ready_seen_us <> 0 AND NOT EXISTS (SELECT 1 FROM upstream);
-- One index for both questions, so that a creation writes no further one.
DROP INDEX fleet_pending;
CREATE INDEX fleet_pending ON fleet (created_us, kind, deleted_us, pending_us)
  WHERE ready = 0 OR pending_us > 0;
