-- Of adapters whose reports bring a document that ages: from when on the document is stale.
CREATE TABLE watch (
  fleet_id TEXT   NOT NULL,
  adapter  TEXT   NOT NULL,
  stale_us BIGINT NOT NULL,                  -- the last microsecond at which it is not
  told     BIGINT NOT NULL DEFAULT 0,        -- 1 when the staleness stands in the report
  PRIMARY KEY (fleet_id, adapter)
) /*sqlite: WITHOUT ROWID */;
CREATE INDEX watch_stale ON watch (stale_us) WHERE told = 0;

-- Events of a HyperFleet resource, the newest of them.
CREATE TABLE event (
  fleet_id TEXT   NOT NULL,
  seq      BIGINT NOT NULL,                  -- from 1 on
  first_us BIGINT NOT NULL,
  last_us  BIGINT NOT NULL,
  count    BIGINT NOT NULL,
  warning  BIGINT NOT NULL,                  -- 1 Warning, 0 Normal
  reason   TEXT   NOT NULL,
  message  TEXT   NOT NULL,
  PRIMARY KEY (fleet_id, seq)
) /*sqlite: WITHOUT ROWID */;
