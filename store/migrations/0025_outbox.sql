-- expands: what targets of events have received
CREATE TABLE outbox_target (
  name       TEXT   NOT NULL,                -- of the target in the settings
  stream     BIGINT NOT NULL,                -- 0 reconcile, 1 states
  seq        BIGINT NOT NULL,                -- it has all events up to this number
  failing_us BIGINT NOT NULL,                -- since when it refuses an event; 0 = it does not
  PRIMARY KEY (name, stream)
);
