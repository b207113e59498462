-- The first estimate of the operation: it is stuck when it takes twice as long.
ALTER TABLE resource ADD COLUMN op_expected_us BIGINT NOT NULL DEFAULT 0;
-- Resources that need a look, beside those that resource_operating has.
CREATE INDEX resource_failed ON resource (seq) WHERE state = 4;
CREATE INDEX resource_degraded ON resource (seq) WHERE state = 3 AND degraded = 1;
