-- expands: the cause that keeps a resource from being ready
-- "hypershift QuotaExceeded no cores are left". No checksum covers it: a program that does not know
-- it yet writes the row, and leaves the cause as it was.
ALTER TABLE resource ADD COLUMN cause TEXT NOT NULL DEFAULT '';
