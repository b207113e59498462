/* See move_table.h. */
#include "store/move_table.h"

#include "driver/base/buf.h"

#define SQL_MAX ((size_t)4096)

/* clang-format off */
const struct hfd_move_table hfd_move_tables[] = {
    {"ring_key", 1, "id:t mark:b"},
    {"fleet", 1,
     "seq:n id:t kind:n owner_id:t name:t generation:n spec:t labels:t conditions:t ready:n "
     "ready_seen_us:n told:n created_us:n updated_us:n deleted_us:n created_by:t updated_by:t "
     "deleted_by:t sum:n? doc_sum:n? pending_us:n"},
    {"fleet_label", 5, "kind:n key:t value:t created_us:n fleet_seq:n"},
    {"fleet_condition", 5, "kind:n type:t status:t created_us:n fleet_seq:n"},
    {"fleet_count", 4, "kind:n field:n name:t value:t n:n"},
    {"report", 2,
     "fleet_id:t adapter:t observed_generation:n observed_us:n received_us:n created_us:n "
     "conditions:t data:t metadata:t secrets:b? sum:n? doc_sum:n? objects:t brief:t long_bytes:n"},
    {"resource", 1,
     "seq:n guresid:t type:t kind:n state:n incarnation:t instance:n cluster_id:t digest:b "
     "raw_digest:b cookie:t op_started_us:n op_estimate_us:n op_deadline_us:n fail_code:t "
     "fail_message:t output:t secrets:b? created_us:n updated_us:n degraded:n op:n op_size:n "
     "op_milestones:t op_plan:t op_waits:t op_usual:t sum:n? op_expected_us:n"},
    {"part", 2, "guresid:t fleet_id:t kind:n name:t generation:n leaving:n pending:n sum:n?"},
    {"order_secrets", 1, "guresid:t secrets:b"},
    {"upstream", 1,
     "guresid:t goal:n watched:n due_us:n checked_us:n full_us:n unsure_us:n behind_us:n tries:n "
     "refusals:n later_names:n error:t shard:n"},
    {"stray", 1,
     "id:t kind:n owner_id:t guresid:t name:t generation:n ready:n created_us:n deleted_us:n "
     "created_by:t seen_us:n wanted_us:n due_us:n tries:n error:t shard:n"},
    {"watch", 2, "fleet_id:t adapter:t stale_us:n told:n"},
    {"event", 2, "fleet_id:t seq:n first_us:n last_us:n count:n warning:n reason:t message:t"},
    {"history", 1,
     "seq:n about:n id:t incarnation:t instance:n at_us:n from_state:n to_state:n what:t "
     "generation:n text:t"},
    {"history_floor", 1, "one:n seq:n"},
    {"tombstone", 1,
     "seq:n about:n id:t removed_us:n created_us:n kind:n type:t incarnation:t cluster_id:t "
     "name:t provider:t"},
    {"ended", 5,
     "about:n id:t instance:n fleet_id:t adapter:t kind:n name:t provider:t cluster:t counted:n "
     "verdict:n counts:t objects:t"},
    {"past", 4, "kind:n op:n size:n ended_us:n took_us:n ending:n milestones:t"},
    {"forecast", 3, "kind:n op:n size:n prior_us:n deadline_us:n plan:t usual:t"},
    {"token_use", 1, "name:t created_us:n used_us:n used_from:t"},
};
/* clang-format on */
const size_t hfd_move_tables_count = sizeof(hfd_move_tables) / sizeof(hfd_move_tables[0]);

const char *const hfd_move_staying[] = {"hfd_meta", "hfd_commit", "replica", "lease",
                                        "settings_epoch"};
const size_t hfd_move_staying_count = sizeof(hfd_move_staying) / sizeof(hfd_move_staying[0]);

/* ---- columns ---- */

static hfd_slice next_word(hfd_slice *text)
{
    const char *space = text->len > 0 ? memchr(text->p, ' ', text->len) : NULL;
    const size_t len = space != NULL ? (size_t)(space - text->p) : text->len;
    const hfd_slice word = {text->p, len};
    const size_t used = space != NULL ? len + 1 : len;

    *text = (hfd_slice){text->p + used, text->len - used};
    return word;
}

static bool read_column(hfd_slice word, struct hfd_move_column *out)
{
    const char *colon = memchr(word.p, ':', word.len);
    const size_t name = colon != NULL ? (size_t)(colon - word.p) : 0;

    if (name == 0 || word.len < name + 2)
        return false;
    out->name = (hfd_slice){word.p, name};
    out->type = colon[1];
    out->null = word.len == name + 3 && colon[2] == '?';
    return (word.len == name + 2 || out->null) && strchr("ntb", out->type) != NULL;
}

static bool read_columns(struct hfd_move_form *form)
{
    hfd_slice text = hfd_slice_of(form->table->columns);

    form->count = 0;
    while (text.len > 0)
        if (form->count == HFD_MOVE_COLUMNS_MAX ||
            !read_column(next_word(&text), &form->columns[form->count++]))
            return false;
    return form->table->keys > 0 && form->table->keys <= form->count;
}

/* ---- SQL ---- */

/* Adds the names of the first `count` columns, each with `behind`. */
static void add_names(struct hfd_buf *b, const struct hfd_move_form *form, size_t count,
                      const char *behind)
{
    for (size_t i = 0; i < count; i++)
        hfd_buf_addf(b, "%s%.*s%s", i > 0 ? ", " : "", HFD_SLICE_FMT(form->columns[i].name),
                     behind);
}

static void add_places(struct hfd_buf *b, size_t from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hfd_buf_addf(b, "%s?%zu", i > 0 ? ", " : "", from + i);
}

static const char *finish(struct hfd_buf *b, struct hfd_arena *mem)
{
    hfd_slice text;

    return hfd_buf_to_arena(b, mem, &text, NULL) == HFD_OK ? text.p : NULL;
}

static const char *read_text(const struct hfd_move_form *form, bool next, struct hfd_arena *mem)
{
    const size_t keys = form->table->keys;
    struct hfd_buf b;

    hfd_buf_init(&b, SQL_MAX);
    hfd_buf_lit(&b, "SELECT ");
    add_names(&b, form, form->count, "");
    hfd_buf_addf(&b, " FROM %s", form->table->name);
    if (next) {
        hfd_buf_lit(&b, " WHERE (");
        add_names(&b, form, keys, "");
        hfd_buf_lit(&b, ") > (");
        add_places(&b, 2, keys);
        hfd_buf_lit(&b, ")");
    }
    hfd_buf_lit(&b, " ORDER BY ");
    add_names(&b, form, keys, "");
    hfd_buf_lit(&b, " LIMIT ?1");
    return finish(&b, mem);
}

static const char *last_text(const struct hfd_move_form *form, struct hfd_arena *mem)
{
    struct hfd_buf b;

    hfd_buf_init(&b, SQL_MAX);
    hfd_buf_lit(&b, "SELECT ");
    add_names(&b, form, form->table->keys, "");
    hfd_buf_addf(&b, " FROM %s ORDER BY ", form->table->name);
    add_names(&b, form, form->table->keys, " DESC");
    hfd_buf_lit(&b, " LIMIT 1");
    return finish(&b, mem);
}

/* @param begin, end  what stands around the table and its columns */
static const char *write_text(const struct hfd_move_form *form, const char *begin, const char *end,
                              struct hfd_arena *mem)
{
    struct hfd_buf b;

    hfd_buf_init(&b, SQL_MAX);
    hfd_buf_addf(&b, "%s %s (", begin, form->table->name);
    add_names(&b, form, form->count, "");
    hfd_buf_addf(&b, ") %s", end);
    if (end[0] == 'V') {
        hfd_buf_lit(&b, "(");
        add_places(&b, 1, form->count);
        hfd_buf_lit(&b, ")");
    }
    return finish(&b, mem);
}

hfd_rc hfd_move_form_make(const struct hfd_move_table *table, struct hfd_arena *mem,
                          struct hfd_move_form *out, struct hfd_err *err)
{
    *out = (struct hfd_move_form){.table = table};
    if (!read_columns(out))
        return hfd_fail(err, HFD_INVALID, "the columns of table %s are not written right",
                        table->name);
    out->first_sql = read_text(out, false, mem);
    out->next_sql = read_text(out, true, mem);
    out->last_sql = last_text(out, mem);
    out->insert_sql = write_text(out, "INSERT INTO", "VALUES ", mem);
    out->copy_sql = write_text(out, "COPY", "FROM STDIN (FORMAT binary)", mem);
    if (out->first_sql == NULL || out->next_sql == NULL || out->last_sql == NULL ||
        out->insert_sql == NULL || out->copy_sql == NULL)
        return hfd_fail_nomem(err, "prepare the tables of a move");
    return HFD_OK;
}
