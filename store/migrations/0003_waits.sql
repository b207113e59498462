-- The message of the hint while an operation is in progress: what it waits for. It is made when the
-- row is judged, so that a poll reads it and computes nothing.
ALTER TABLE resource ADD COLUMN op_waits TEXT NOT NULL DEFAULT '';
