-- The keys of the key ring that this database was used with: a changed or missing one is noticed.
CREATE TABLE ring_key (
  id    TEXT NOT NULL PRIMARY KEY,           -- 8 hex digits, as in the key ring
  mark  BLOB NOT NULL                        -- a keyed hash of a constant: hfd_key_view.mark
) /*sqlite: WITHOUT ROWID */;
