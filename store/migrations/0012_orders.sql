-- The secrets of an order that an adapter of this program needs later, sealed.
CREATE TABLE order_secrets (
  guresid TEXT NOT NULL PRIMARY KEY,
  secrets BLOB NOT NULL
) /*sqlite: WITHOUT ROWID */;
