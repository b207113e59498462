-- What judgements read of a report with long conditions; empty: they read the conditions.
ALTER TABLE report ADD COLUMN brief TEXT NOT NULL DEFAULT '';
-- The length of such conditions; 0: there is no brief form.
ALTER TABLE report ADD COLUMN long_bytes BIGINT NOT NULL DEFAULT 0;
