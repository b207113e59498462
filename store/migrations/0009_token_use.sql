-- The last use of each token. The tokens file has the tokens themselves.
CREATE TABLE token_use (
    name       TEXT   NOT NULL PRIMARY KEY,
    created_us BIGINT NOT NULL,
    used_us    BIGINT NOT NULL,
    used_from  TEXT   NOT NULL
);
