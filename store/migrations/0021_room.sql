-- expands: rows that reports change stay in their page, on PostgreSQL
-- Such a row needs no new entries in the indexes. It needs room in its page, and no index may have
-- a column that changed. A table takes the room for rows that come from now on.
/*postgres: ALTER TABLE fleet SET (fillfactor = 80); */
/*postgres: ALTER TABLE report SET (fillfactor = 80); */
-- ready_seen_us in steps of 16.8 s, for the index: reports of several adapters come together.
/*postgres: ALTER TABLE fleet
  ADD COLUMN ready_seen_step BIGINT GENERATED ALWAYS AS (ready_seen_us / 16777216) STORED; */
/*postgres: DROP INDEX fleet_ready; */
/*postgres: CREATE INDEX fleet_ready ON fleet (kind, ready, ready_seen_step, created_us); */
