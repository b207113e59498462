-- expands: what an order says about its protection, and the precondition of the last operation
-- No checksum covers the columns: a program that does not know them yet writes the row, and leaves
-- them as they were.
ALTER TABLE resource ADD COLUMN protect TEXT NOT NULL DEFAULT ''; -- "yes" or "no", and its labels
ALTER TABLE resource ADD COLUMN op_match TEXT NOT NULL DEFAULT ''; -- If-Match of the operation
