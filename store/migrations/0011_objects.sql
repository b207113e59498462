-- Counts of the objects in a report's data: a summary of them reads no data. '' counts none.
ALTER TABLE report ADD COLUMN objects TEXT NOT NULL DEFAULT '';

-- What the reports of an ended instance said of their objects: kept with its history.
CREATE TABLE ended (
  about    BIGINT NOT NULL,                  -- as history.about, history.id and history.instance
  id       TEXT   NOT NULL,
  instance BIGINT NOT NULL,
  fleet_id TEXT   NOT NULL,                  -- of the cluster or nodepool, as kind and name
  adapter  TEXT   NOT NULL,
  kind     BIGINT NOT NULL,
  name     TEXT   NOT NULL,
  provider TEXT   NOT NULL,                  -- where the objects are unless they say so
  cluster  TEXT   NOT NULL,
  counted  BIGINT NOT NULL,                  -- 1: the adapter decided the status of the instance
  verdict  BIGINT NOT NULL,                  -- what the report made of its objects
  counts   TEXT   NOT NULL,                  -- as report.objects
  objects  TEXT   NOT NULL,                  -- without their details
  PRIMARY KEY (about, id, instance, fleet_id, adapter)
);
