-- Several servers on one database. With SQLite these tables stay empty.
CREATE TABLE replica (
  id             TEXT   NOT NULL PRIMARY KEY, -- new at each start
  name           TEXT   NOT NULL,             -- of its machine
  version        TEXT   NOT NULL,             -- of the program
  schema         BIGINT NOT NULL,             -- that the program knows
  started_us     BIGINT NOT NULL,
  beat_us        BIGINT NOT NULL,             -- its last sign of life
  key_ids        TEXT   NOT NULL,             -- of its key ring, with commas
  settings_epoch BIGINT NOT NULL,
  settings_mark  TEXT   NOT NULL
);
-- A shard is a sixteenth of the GUResIDs. Its holder alone works for them.
CREATE TABLE lease (
  shard    BIGINT NOT NULL PRIMARY KEY,
  holder   TEXT   NOT NULL,                   -- replica.id, or empty
  epoch    BIGINT NOT NULL,                   -- rises each time that the shard is taken
  until_us BIGINT NOT NULL                    -- another one may take it from then on
);
-- The settings of the replica that started last, in one row (driver/replica/settings.h).
CREATE TABLE settings_epoch (
  one   BIGINT NOT NULL PRIMARY KEY,          -- 1
  epoch BIGINT NOT NULL,
  mark  BIGINT NOT NULL,                      -- fingerprint of rules and version
  rules BIGINT NOT NULL                       -- fingerprint of the rules alone
);
-- The bit of the shard: 1 << its number. Rows from before have any: it says who works on them.
ALTER TABLE upstream ADD COLUMN shard BIGINT NOT NULL DEFAULT 1;
ALTER TABLE stray ADD COLUMN shard BIGINT NOT NULL DEFAULT 1;
UPDATE upstream SET shard = CASE substr(guresid, length(guresid), 1)
  WHEN '1' THEN 2 WHEN '2' THEN 4 WHEN '3' THEN 8 WHEN '4' THEN 16 WHEN '5' THEN 32 WHEN '6' THEN 64
  WHEN '7' THEN 128 WHEN '8' THEN 256 WHEN '9' THEN 512 WHEN 'a' THEN 1024 WHEN 'b' THEN 2048
  WHEN 'c' THEN 4096 WHEN 'd' THEN 8192 WHEN 'e' THEN 16384 WHEN 'f' THEN 32768 ELSE 1 END;
UPDATE stray SET shard = CASE substr(guresid, length(guresid), 1)
  WHEN '1' THEN 2 WHEN '2' THEN 4 WHEN '3' THEN 8 WHEN '4' THEN 16 WHEN '5' THEN 32 WHEN '6' THEN 64
  WHEN '7' THEN 128 WHEN '8' THEN 256 WHEN '9' THEN 512 WHEN 'a' THEN 1024 WHEN 'b' THEN 2048
  WHEN 'c' THEN 4096 WHEN 'd' THEN 8192 WHEN 'e' THEN 16384 WHEN 'f' THEN 32768 ELSE 1 END;
