-- contracts: shards
ALTER TABLE upstream DROP COLUMN shard;
ALTER TABLE stray DROP COLUMN shard;
DROP TABLE lease;
