"""Rules that the tables of a store on PostgreSQL keep, whatever happened. It is SQL of its own: no
rule rests on the code that it judges.
"""
import postgres

# A fault, and the query that finds its rows.
RULES = (
    ("a part that belongs to two resources",
     "SELECT fleet_id FROM part GROUP BY fleet_id HAVING count(*) > 1"),
    ("a GUResID with two clusters that are not being deleted",
     "SELECT labels::jsonb ->> 'humanitec_guresid' AS gid, count(*) FROM fleet"
     " WHERE kind = 1 AND deleted_us = 0 AND labels::jsonb ? 'humanitec_guresid'"
     " GROUP BY 1 HAVING count(*) > 1"),
    ("a resource of kind cluster without exactly one cluster",
     "SELECT guresid FROM resource r WHERE kind = 1 AND (SELECT count(*) FROM part p"
     " WHERE p.guresid = r.guresid AND p.kind = 1) <> 1"),
    ("a part whose HyperFleet resource is not there",
     "SELECT guresid, fleet_id FROM part WHERE fleet_id NOT IN (SELECT id FROM fleet)"),
    ("a part of no resource",
     "SELECT guresid, fleet_id FROM part WHERE guresid NOT IN (SELECT guresid FROM resource)"),
    ("a nodepool without its cluster, or that lives in one being deleted",
     "SELECT n.id FROM fleet n LEFT JOIN fleet c ON c.id = n.owner_id WHERE n.kind = 2"
     " AND (c.id IS NULL OR (n.deleted_us = 0 AND c.deleted_us <> 0))"),
    ("a report on nothing",
     "SELECT fleet_id, adapter FROM report WHERE fleet_id NOT IN (SELECT id FROM fleet)"),
    ("a condition or label without its resource",
     "SELECT fleet_seq FROM (SELECT fleet_seq FROM fleet_condition UNION ALL"
     " SELECT fleet_seq FROM fleet_label) x WHERE fleet_seq NOT IN (SELECT seq FROM fleet)"),
    ("a document with other conditions than it is found by",
     "SELECT f.id FROM fleet f WHERE (SELECT count(*) FROM"
     " jsonb_array_elements(f.conditions::jsonb) e"
     " WHERE e ->> 'type' NOT IN ('Reconciled', 'LastKnownReconciled')) <>"
     " (SELECT count(*) FROM fleet_condition c WHERE c.fleet_seq = f.seq AND EXISTS"
     " (SELECT 1 FROM jsonb_array_elements(f.conditions::jsonb) e"
     "  WHERE e ->> 'type' = c.type AND e ->> 'status' = c.status))"),
    ("a Ready that its document does not say",
     "SELECT f.id FROM fleet f WHERE f.ready <> (SELECT count(*) FROM fleet_condition c"
     " WHERE c.fleet_seq = f.seq AND c.type = 'Ready' AND c.status = 'True')"),
    ("a total that is not the count",
     "WITH counted AS ("
     " SELECT kind, 0 AS field, '' AS name, '' AS value, count(*) AS n FROM fleet GROUP BY kind"
     " UNION ALL SELECT kind, 1, type, status, count(*) FROM fleet_condition GROUP BY 1, 3, 4"
     " UNION ALL SELECT kind, 2, key, value, count(*) FROM fleet_label"
     "  WHERE key <> 'humanitec_guresid' GROUP BY 1, 3, 4"
     " UNION ALL SELECT kind, 3, substr(type, position('/' IN type) + 1), state::text, count(*)"
     "  FROM resource GROUP BY 1, 3, 4),"
     " kept AS (SELECT kind % 16 AS kind, field, name, value, sum(n) AS n FROM fleet_count"
     "  GROUP BY 1, 2, 3, 4)" # of all slots
     " SELECT kind, field, name, value, c.n AS counted, k.n AS kept"
     " FROM counted c FULL JOIN kept k USING (kind, field, name, value)"
     " WHERE coalesce(c.n, 0) <> coalesce(k.n, 0)"),
    ("a history whose steps do not meet",
     "SELECT id, seq, came_to, from_state FROM (SELECT id, seq, from_state,"
     " lag(to_state) OVER (PARTITION BY id, incarnation ORDER BY seq) AS came_to"
     " FROM history WHERE about = 0) h WHERE came_to IS NOT NULL AND from_state <> came_to"),
    ("a history that does not end where the resource is",
     "SELECT r.guresid FROM resource r WHERE r.state <> coalesce((SELECT h.to_state FROM history h"
     " WHERE h.about = 0 AND h.id = r.guresid AND h.seq >= r.seq ORDER BY h.seq DESC LIMIT 1), 1)"),
)


# With a remote HyperFleet, rows of `fleet` are copies that no list searches: they have no keys.
OF_LISTS = ("a document with other conditions than it is found by",
            "a Ready that its document does not say")


def faults(url, remote=False):
    """The faults in the tables of a database, as texts. remote: its HyperFleet is a remote one."""
    found = []
    for what, sql in RULES:
        if remote and what in OF_LISTS:
            continue
        rows = postgres.query(url, sql)
        if rows:
            found.append("%s: %s" % (what, rows[:5]))
    return found
