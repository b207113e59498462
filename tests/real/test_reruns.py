"""A group of writes that PostgreSQL undoes runs again, is stored once, and is counted by what undid
it.
"""
import json
import os
import shutil
import subprocess
import tempfile
import urllib.request

import real
import postgres
from lib import BASE, Client, Place, Server, cluster_input, eventually, guresid

# A trigger raises the error at the first row of a kind; a sequence is not undone with the group.
RAISE = """
CREATE SEQUENCE raised;
CREATE FUNCTION raise_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('raised') = 1 THEN
        RAISE EXCEPTION 'of the test' USING ERRCODE = '%s';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER raise_once BEFORE INSERT ON resource FOR EACH ROW EXECUTE FUNCTION raise_once();
"""
DROP = "DROP TRIGGER raise_once ON resource; DROP FUNCTION raise_once; DROP SEQUENCE raised"
REASONS = {"40P01": "deadlock", "40001": "serialization", "55P03": "lock"}
LIMIT_S = 60


class Reruns(real.unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.database = postgres.Postgres()
        cls.addClassCleanup(cls.database.close)
        cls.database.start()
        cls.place = Place(tempfile.mkdtemp(prefix="hfd-reruns-"),
                          base=cls.database.url("postgres"))
        cls.addClassCleanup(shutil.rmtree, cls.place.folder, True)
        cls.place.make()
        cls.server = Server(place=cls.place)
        cls.addClassCleanup(cls.server.close)
        cls.server.start()

    def reruns(self, reason):
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.server.ops_port,
                                    timeout=LIMIT_S) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith('hfd_store_reruns_total{reason="%s"} ' % reason):
                    return int(line.split()[1])
        return 0

    def psql(self):
        """A second connection, which takes statements at its input."""
        proc = subprocess.Popen([os.path.join(postgres.programs(), "psql"), "-X", "-q", "-A", "-t",
                                 "-v", "ON_ERROR_STOP=1", self.place.url],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(proc.wait)
        self.addCleanup(proc.kill)
        self.addCleanup(proc.stdin.close)
        self.addCleanup(proc.stdout.close)
        return proc

    def say(self, proc, text):
        proc.stdin.write(text + "; SELECT 'done';\n")
        proc.stdin.flush()
        self.assertEqual(proc.stdout.readline().strip(), "done")

    def test_undone_by_the_database(self):
        """Each of these errors undoes the group of a PUT once."""
        client = Client(self.server)
        self.addCleanup(client.close)
        for code, reason in REASONS.items():
            before = self.reruns(reason)
            for statement in (RAISE % code).split(";\nCREATE"):
                postgres.query(self.place.url, "CREATE" + statement.replace("\nCREATE", "", 1))
            gid = guresid("again")
            answer = client.put("/" + gid, cluster_input())
            postgres.query(self.place.url, DROP)
            self.assertEqual(answer.status, 202, answer)
            self.assertEqual(self.reruns(reason) - before, 1, reason)
            rows = postgres.query(self.place.url, "SELECT count(*) FROM fleet WHERE"
                                  " labels::jsonb ->> 'humanitec_guresid' = '%s'" % gid)
            self.assertEqual(rows, [["1"]])

    def test_another_takes_the_name(self):
        """Another program commits a cluster of the same name while ours waits for it: 409."""
        client = Client(self.server)
        self.addCleanup(client.close)
        cluster = {"kind": "Cluster", "name": guresid("taken"), "spec": {}}
        made = client.request("POST", BASE + "/clusters", cluster)
        self.assertEqual(made.status, 201, made)
        before = self.reruns("conflict")
        columns = postgres.query(self.place.url, "SELECT string_agg(column_name, ', ') FROM"
                                 " information_schema.columns WHERE table_name = 'fleet'"
                                 " AND is_generated = 'NEVER'")[0][0]
        other = self.psql() # it takes the row away, and begins to bring it back
        self.say(other, "CREATE TEMPORARY TABLE copy AS SELECT * FROM fleet WHERE id = '%s';"
                 " DELETE FROM fleet WHERE id = '%s'; BEGIN; INSERT INTO fleet (%s) SELECT %s"
                 " FROM copy" % (made.json["id"], made.json["id"], columns, columns))
        ours = subprocess.Popen(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H",
                                 "Content-Type: application/json", "-d", json.dumps(cluster),
                                 "http://127.0.0.1:%d%s"
                                 % (self.server.port, BASE + "/clusters")],
                                stdout=subprocess.PIPE, text=True)
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'transactionid'"
        eventually(lambda: postgres.query(self.place.url, waits) == [["1"]], "ours waits", LIMIT_S)
        self.say(other, "COMMIT")
        self.assertEqual(ours.communicate(timeout=LIMIT_S)[0], "409")
        self.assertEqual(self.reruns("conflict") - before, 1)


if __name__ == "__main__":
    real.main()
