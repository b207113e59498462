-- expands: when a program was last seen to commit
-- A row whose number did not change for a day is that of a program that is gone.
ALTER TABLE hfd_commit ADD COLUMN seen_n BIGINT NOT NULL DEFAULT -1;
ALTER TABLE hfd_commit ADD COLUMN seen_us BIGINT NOT NULL DEFAULT 0;
