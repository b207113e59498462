-- Checksums of rows (store/row_sum.h). NULL is filled by the program, once: the next migration.
ALTER TABLE fleet ADD COLUMN sum BIGINT;        -- of all but the documents
ALTER TABLE fleet ADD COLUMN doc_sum BIGINT;    -- of spec, labels, conditions
ALTER TABLE report ADD COLUMN sum BIGINT;       -- received_us is added to it
ALTER TABLE report ADD COLUMN doc_sum BIGINT;   -- of data, metadata, secrets
ALTER TABLE resource ADD COLUMN sum BIGINT;
ALTER TABLE part ADD COLUMN sum BIGINT;
