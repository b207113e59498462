"""A PostgreSQL without memory or disk: requests that meet it are 503, and all others go on."""
import re
import shutil
import tempfile
import urllib.request

import real
import postgres
from lib import Client, Place, Server, cluster_input, eventually

# Reads and writes of the resource `poor` fail. The table becomes a view, which sees each read.
FAIL_READS = """
BEGIN;
CREATE FUNCTION may_read(id text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF id = 'poor' THEN
        RAISE EXCEPTION 'of the test' USING ERRCODE = '%s';
    END IF;
    RETURN true;
END $$;
ALTER TABLE resource RENAME TO resource_rows;
CREATE VIEW resource AS SELECT * FROM resource_rows WHERE may_read(guresid);
COMMIT
"""
READ_AGAIN = """
BEGIN;
DROP VIEW resource;
ALTER TABLE resource_rows RENAME TO resource;
DROP FUNCTION may_read;
COMMIT
"""
FAIL_WRITES = """
CREATE FUNCTION may_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.guresid = 'full' THEN
        RAISE EXCEPTION 'of the test' USING ERRCODE = '%s';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER may_write BEFORE INSERT ON resource FOR EACH ROW EXECUTE FUNCTION may_write();
"""
WRITE_AGAIN = "DROP TRIGGER may_write ON resource; DROP FUNCTION may_write"
# New sessions find another set_config, which fails.
FAIL_SESSIONS = """
CREATE SCHEMA poor;
CREATE FUNCTION poor.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'of the test' USING ERRCODE = '%s';
END $$;
ALTER ROLE hfd SET search_path = poor, public, pg_catalog;
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hyperfleet-driver'
"""
SESSIONS_AGAIN = "ALTER ROLE hfd RESET search_path; DROP SCHEMA poor CASCADE"
# The first group ends with its connection; then the first looks at hfd_commit fail.
LOSE_ONE = """
BEGIN;
CREATE SEQUENCE lost;
CREATE SEQUENCE looks;
CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('lost') = 1 THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION may_look() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (SELECT is_called FROM lost) AND nextval('looks') <= 3 THEN
        RAISE EXCEPTION 'of the test' USING ERRCODE = '%s';
    END IF;
    RETURN true;
END $$;
CREATE TRIGGER lose BEFORE INSERT ON resource FOR EACH ROW EXECUTE FUNCTION lose();
ALTER TABLE hfd_commit RENAME TO commit_rows;
CREATE VIEW hfd_commit AS SELECT * FROM commit_rows WHERE may_look();
COMMIT
"""
LOSE_NONE = """
BEGIN;
DROP VIEW hfd_commit;
ALTER TABLE commit_rows RENAME TO hfd_commit;
DROP TRIGGER lose ON resource;
DROP FUNCTION lose, may_look;
DROP SEQUENCE lost, looks;
COMMIT
"""
MEMORY, DISK, TEMP_FILES = "53200", "53100", "53400"
AWAY = "the database cannot be reached: work is refused until it can be"
LIST = "/api/driver/v1/resources"
LIMIT_S = 60


class Limits(real.unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.database = postgres.Postgres()
        cls.addClassCleanup(cls.database.close)
        cls.database.start()
        cls.place = Place(tempfile.mkdtemp(prefix="hfd-limits-"),
                          base=cls.database.url("postgres"))
        cls.addClassCleanup(shutil.rmtree, cls.place.folder, True)
        cls.place.make()
        cls.server = Server(place=cls.place)
        cls.addClassCleanup(cls.server.close)
        cls.server.start()

    def setUp(self):
        self.before = 0
        self.before = len(self.went_away())
        self.client = Client(self.server)
        self.addCleanup(self.client.close)

    def put(self, name):
        return self.client.put("/" + name, cluster_input())

    def went_away(self):
        return [r for r in self.server.records() if r["msg"] == AWAY][self.before:]

    def refused(self, answer):
        self.assertEqual(answer.status, 503, answer.body)
        self.assertTrue(int(answer.header("Retry-After")) > 0)

    def ops(self, path):
        return urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.server.ops_port, path),
                                      timeout=LIMIT_S)

    def ready(self):
        with self.ops("/readyz") as answer:
            return answer.status == 200

    def failed(self, result):
        """How many write jobs had this result."""
        with self.ops("/metrics") as answer:
            found = re.search(r'^hfd_store_jobs_total\{result="%s"\} (\d+)$' % result,
                              answer.read().decode(), re.M)
        return int(found.group(1)) if found else 0

    def test_read(self):
        """A read without memory fails alone: a GET, and a list by another thread."""
        for name in ("poor", "rich"):
            self.assertEqual(self.put(name).status, 202)
        for code in (MEMORY, DISK, TEMP_FILES):
            with self.subTest(code):
                postgres.query(self.place.url, FAIL_READS % code)
                try:
                    self.refused(self.client.get("/poor"))
                    self.assertEqual(self.client.get("/rich").status, 202)
                    self.refused(self.client.get(LIST))
                    self.assertEqual(self.client.get("/rich").status, 202)
                    self.assertEqual(self.put("rich").status, 202)
                    self.assertTrue(self.ready())
                finally:
                    postgres.query(self.place.url, READ_AGAIN)
                self.assertEqual(self.client.get("/poor").status, 202)
                self.assertEqual(self.client.get(LIST).status, 200)
                self.assertEqual(self.went_away(), [])

    def test_write(self):
        """A write without disk or memory is refused and not stored; the next one is. The replica
        stays ready. Its log has the reason, and its metrics have what the alert WritesFail needs.
        """
        for code, result in ((DISK, "IO"), (MEMORY, "NOMEM")):
            with self.subTest(code):
                failed = self.failed(result)
                postgres.query(self.place.url, FAIL_WRITES % code)
                try:
                    self.refused(self.put("full"))
                    self.assertEqual(self.put("room-" + code).status, 202)
                    self.assertEqual(self.client.get("/full").status, 404)
                    self.assertTrue(self.ready())
                finally:
                    postgres.query(self.place.url, WRITE_AGAIN)
                self.assertEqual(self.went_away(), [])
                self.assertEqual(self.failed(result), failed + 1)
                told = [r for r in self.server.records() if r["msg"] == "request failed"]
                self.assertEqual(told[-1]["rc"], result)
                self.assertIn("(%s)" % code, told[-1]["detail"])
        self.assertEqual(self.put("full").status, 202)

    def test_session(self):
        """A server that has no memory for new sessions is away, until it has."""
        postgres.query(self.place.url, FAIL_SESSIONS % MEMORY)
        try:
            self.refused(self.put("late"))
            eventually(self.went_away, "the store is away", LIMIT_S)
        finally:
            postgres.query(self.place.url, SESSIONS_AGAIN)
        eventually(lambda: self.put("late").status == 202, "it goes on", LIMIT_S)

    def test_lost_commit(self):
        """The writer asks again what became of a commit when the first answers have no memory."""
        for code in (MEMORY, DISK):
            with self.subTest(code):
                postgres.query(self.place.url, LOSE_ONE % code)
                try:
                    self.assertEqual(self.put("found-" + code).status, 202)
                    self.assertEqual(postgres.query(self.place.url,
                                                    "SELECT last_value > 3 FROM looks"), [["t"]])
                finally:
                    postgres.query(self.place.url, LOSE_NONE)
                self.assertEqual(self.client.get("/found-" + code).status, 202)


if __name__ == "__main__":
    real.main()
