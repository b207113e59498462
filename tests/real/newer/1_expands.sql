-- expands: a column and a table that the program of the tree does not know
ALTER TABLE token_use ADD COLUMN note TEXT NOT NULL DEFAULT '';
CREATE TABLE newer (k BIGINT NOT NULL PRIMARY KEY);
