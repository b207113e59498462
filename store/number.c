#include "store/number.h"

#include "store/row_io.h"

static hfd_rc read_number(struct hfd_txn *tx, const char *sql, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare(tx->db, sql, &st, err);

    return rc == HFD_OK ? hfd_row_number(st, 0, out, err) : rc;
}

hfd_rc hfd_number_next(struct hfd_txn *tx, struct hfd_number *n, const char *sql_last, int64_t *out,
                       struct hfd_err *err)
{
    const char *own = n != NULL ? hfd_db_sql_number(tx->db) : NULL;
    hfd_rc rc = HFD_OK;

    *out = n != NULL ? n->last : 0;
    if (*out == 0) {
        rc = read_number(tx, own != NULL ? own : sql_last, out, err);
        if (n != NULL)
            n->first = *out;
    }
    if (rc == HFD_OK && own != NULL && *out - n->first >= HFD_NUMBERS_MAX)
        rc = hfd_fail(err, HFD_LIMIT, "store: a group of jobs has more than %d numbers",
                      HFD_NUMBERS_MAX);
    if (rc != HFD_OK)
        return rc;
    (*out)++;
    if (n != NULL)
        n->last = *out;
    return HFD_OK;
}

hfd_rc hfd_number_end(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    const char *sql = tx->writable ? NULL : hfd_db_sql_number_end(tx->db);

    *out = INT64_MAX;
    return sql != NULL ? read_number(tx, sql, out, err) : HFD_OK;
}

hfd_rc hfd_number_bound(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    const char *sql = tx->writable ? NULL : hfd_db_sql_number_bound(tx->db);

    *out = INT64_MAX;
    return sql != NULL ? read_number(tx, sql, out, err) : HFD_OK;
}
