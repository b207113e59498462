-- Keys of Kubernetes labels become search keys: those with capitals, dots, hyphens and slashes.
-- Only an embedded HyperFleet has search keys: its resources have one of Available.
/*sqlite:
INSERT INTO fleet_label (kind, key, value, created_us, fleet_seq)
  SELECT x.kind, x.key, x.value, x.created_us, x.seq
  FROM (SELECT f.kind, j.key, j.value, f.created_us, f.seq,
               substr(j.key, 1, instr(j.key, '/') - 1) AS prefix,
               substr(j.key, instr(j.key, '/') + 1) AS name
        FROM fleet f, json_each(f.labels) j
        WHERE j.type = 'text' AND j.key GLOB '*[^a-z0-9_]*') x
  WHERE length(x.name) <= 63 AND x.name GLOB '[A-Za-z0-9]*' AND x.name GLOB '*[A-Za-z0-9]'
    AND x.name NOT GLOB '*[^A-Za-z0-9._-]*'
    AND (instr(x.key, '/') = 0
         OR (length(x.prefix) <= 253 AND x.prefix GLOB '[a-z0-9]*' AND x.prefix GLOB '*[a-z0-9]'
             AND x.prefix NOT GLOB '*[^a-z0-9.-]*' AND x.prefix NOT GLOB '*..*'
             AND x.prefix NOT GLOB '*.-*' AND x.prefix NOT GLOB '*-.*'))
    AND EXISTS (SELECT 1 FROM fleet_condition c
                WHERE c.kind = x.kind AND c.type = 'Available'
                  AND c.status IN ('True', 'False', 'Unknown')
                  AND c.created_us = x.created_us AND c.fleet_seq = x.seq);
INSERT INTO fleet_count (kind, field, name, value, n)
  SELECT kind, 2, key, value, count(*) FROM fleet_label
  WHERE key GLOB '*[^a-z0-9_]*' GROUP BY kind, key, value;
*/
