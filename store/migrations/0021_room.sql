-- expands: room in the pages of rows that reports change, on PostgreSQL
-- A changed row that stays in its page needs no new entries in the indexes. A table takes the room
-- for rows that come from now on.
/*postgres: ALTER TABLE fleet SET (fillfactor = 80); */
/*postgres: ALTER TABLE report SET (fillfactor = 80); */
