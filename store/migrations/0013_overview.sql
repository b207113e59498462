-- The first estimate of the operation: it is stuck when it takes twice as long.
ALTER TABLE resource ADD COLUMN op_expected_us BIGINT NOT NULL DEFAULT 0;
-- Resources that need a look: a deadline ahead, failed, degraded. The rest is ready.
CREATE INDEX resource_under_way ON resource (op_deadline_us) WHERE state IN (1, 2, 5);
CREATE INDEX resource_failed ON resource (seq) WHERE state = 4;
CREATE INDEX resource_degraded ON resource (seq) WHERE state = 3 AND degraded = 1;
