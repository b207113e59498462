-- expands: one replica leads: it alone does the work in the background
-- A program of before works by shards (0018). While one lives, no replica leads.
CREATE TABLE leader (
  one      BIGINT NOT NULL PRIMARY KEY,       -- 1
  holder   TEXT   NOT NULL,                   -- replica.id, or empty
  epoch    BIGINT NOT NULL,                   -- rises each time that the lease is taken
  until_us BIGINT NOT NULL                    -- another one may take it from then on
);
