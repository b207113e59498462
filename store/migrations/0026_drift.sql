-- expands: resources that are not as they were ordered
-- No checksum covers the columns: a program that does not know them yet writes the row, and leaves
-- them as they were.
ALTER TABLE part ADD COLUMN aside TEXT NOT NULL DEFAULT '';
ALTER TABLE resource ADD COLUMN drift TEXT NOT NULL DEFAULT '';
ALTER TABLE resource ADD COLUMN drift_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE resource ADD COLUMN mendable BIGINT NOT NULL DEFAULT 0;
ALTER TABLE resource ADD COLUMN repairs TEXT NOT NULL DEFAULT '';
ALTER TABLE resource ADD COLUMN repair_us BIGINT NOT NULL DEFAULT 0;
CREATE INDEX resource_drifted ON resource (seq) WHERE drift_count > 0;
CREATE INDEX resource_repair ON resource (repair_us) WHERE repair_us > 0;
