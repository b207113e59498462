-- Several programs on one database of PostgreSQL. SQLite keeps its version in the file's header,
-- and no other program writes, so the first two tables stay empty there.
CREATE TABLE IF NOT EXISTS hfd_meta (
  key   TEXT NOT NULL PRIMARY KEY,             -- schema_now: the version of the schema
  value TEXT NOT NULL
);

-- The last group of jobs that each program committed: it looks here when an answer was lost.
CREATE TABLE hfd_commit (
  replica TEXT   NOT NULL PRIMARY KEY,
  n       BIGINT NOT NULL
);

-- A cluster or nodepool belongs to one driver resource.
DROP INDEX part_fleet;
CREATE UNIQUE INDEX part_fleet ON part (fleet_id);
