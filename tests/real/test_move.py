"""`migrate`, `backup` and `restore` between SQLite and a real PostgreSQL: both directions, kills at
any moment, changed bytes, refusals.
"""
import fcntl
import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time
import unittest

import real
import postgres

STORED = 2000     # driver resources: 30,000 rows
OTHERS = 40       # rows in each other table
KILLS = 5
STAYING = ("hfd_meta", "hfd_commit", "replica", "leader", "settings_epoch")
PROGRAM = real.lib.program()
SEED = int(os.environ.get("HFD_SEED") or random.randrange(1 << 32))


def fill_others(path, rng):
    """Rows in the tables that tests/bench/fill.c leaves empty: any values of their types."""
    db = sqlite3.connect(path)
    for table in tables_of(db):
        if db.execute("SELECT count(*) FROM %s" % table).fetchone()[0]:
            continue
        columns = db.execute("SELECT type, \"notnull\" FROM pragma_table_info('%s')" % table)
        columns = columns.fetchall()
        for i in range(OTHERS):
            row = [value(kind, needed, i, at, rng) for at, (kind, needed) in enumerate(columns)]
            db.execute("INSERT INTO %s VALUES (%s)" % (table, ",".join("?" * len(row))), row)
    db.commit()
    db.close()


def tables_of(db):
    """The tables that a move carries."""
    rows = db.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall()
    return [row[0] for row in rows if row[0] not in STAYING]


def value(kind, needed, row, at, rng):
    if not needed and kind != "INTEGER" and rng.random() < 0.3:
        return None
    if kind in ("BIGINT", "INTEGER"):
        return rng.choice((1, -1)) * row * 10 ** (at % 17) if at else row + 1
    text = "%03d'\\\t\n\u00e4\u2192\U0001f600%d" % (row, at) + "x" * rng.randrange(300)
    return text.encode() + bytes(range(256)) if kind == "BLOB" else text


def differences(one, other):
    """Tables of two SQLite databases that do not have the same rows."""
    db = sqlite3.connect(one)
    db.execute("ATTACH ? AS other", (other,))
    found = []
    for table in tables_of(db):
        for left, right in (("main", "other"), ("other", "main")):
            if db.execute("SELECT count(*) FROM (SELECT * FROM %s.%s EXCEPT SELECT * FROM %s.%s)"
                          % (left, table, right, table)).fetchone()[0]:
                found.append("%s: %s has other rows than %s" % (table, left, right))
    db.close()
    return found


def start_migrate(source, target, *more):
    return subprocess.Popen([PROGRAM, "migrate", "--from", source, "--to", target, *more],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=real.lib.clean_env())


class Move(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = postgres.Postgres()
        cls.addClassCleanup(cls.server.close)
        cls.server.start()
        cls.dir = tempfile.mkdtemp(prefix="hfd-move-")
        cls.addClassCleanup(shutil.rmtree, cls.dir, True)
        cls.source = os.path.join(cls.dir, "source")
        fill = os.environ.get("HFD_FILL") or os.path.join(os.path.dirname(PROGRAM),
                                                          "tests/bench/fill")
        subprocess.run([fill, "--data", cls.source, "--count", str(STORED)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        fill_others(os.path.join(cls.source, "store.db"), random.Random(SEED))
        print("seed %d" % SEED)

    def setUp(self):
        self.database = "t%d" % time.monotonic_ns()
        self.url = self.server.create(self.database)
        self.addCleanup(self.server.drop, self.database)
        self.work = tempfile.mkdtemp(dir=self.dir)
        self.rng = random.Random("%d %s" % (SEED, self.id()))

    def query(self, text):
        return self.server.query(text, self.database)

    def migrate(self, source, target, status=0, *more):
        proc = start_migrate(source, target, *more)
        out, err = proc.communicate(timeout=300)
        self.assertEqual(proc.returncode, status, err)
        self.assertNotIn(postgres.PASSWORD + "@", out + err, "the password is not shown")
        return out if status == 0 else err

    def migrate_with_kills(self, source, target, kills=KILLS):
        """Kills the command again and again, then lets it end; returns how many kills came in
        time."""
        cut, longest = 0, 0.1
        for _ in range(kills):
            proc = start_migrate(source, target)
            try:
                _, err = proc.communicate(timeout=self.rng.uniform(0.02, longest))
                self.assertEqual(proc.returncode, 0, err)
                break
            except subprocess.TimeoutExpired:
                proc.kill()
                proc.communicate()
                cut += 1
                longest *= 2
        return cut

    def half_moved(self):
        """A target with some rows of the source: the move waits for a table, and is killed."""
        empty = os.path.join(self.work, "no-rows")
        done = real.lib.run("migrate", "--from", "sqlite:" + self.copy_without_rows(empty), "--to",
                            self.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        lock = subprocess.Popen([os.path.join(postgres.programs(), "psql"), "-X", "-q", self.url],
                                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        lock.stdin.write("BEGIN; LOCK TABLE report IN SHARE MODE;\n")
        lock.stdin.flush()
        real.lib.eventually(
            lambda: self.query("SELECT count(*) FROM pg_locks WHERE relation = 'report'::regclass"
                               " AND mode = 'ShareLock' AND granted") == [["1"]],
            "the table is locked", 60)
        proc = start_migrate("sqlite:" + self.source, self.url)
        real.lib.eventually(lambda: self.query("SELECT count(*) FROM fleet_count")[0][0] != "0",
                            "the tables before are copied", 60)
        proc.kill()
        proc.communicate()
        lock.communicate("ROLLBACK;\n")
        self.assertEqual(self.query("SELECT count(*) FROM hfd_meta WHERE key = 'move'"), [["1"]])

    def copy_without_rows(self, path):
        shutil.copytree(self.source, path)
        db = sqlite3.connect(os.path.join(path, "store.db"))
        for table in tables_of(db):
            db.execute("DELETE FROM %s" % table)
        db.commit()
        db.close()
        return path

    def test_there_and_back(self):
        doc = json.loads(self.migrate("sqlite:" + self.source, self.url, 0, "--json"))
        rows = {t["name"]: t["rows"] for t in doc["tables"]}
        self.assertEqual(rows["resource"], STORED)
        self.assertEqual(rows["history"], OTHERS)
        self.assertEqual(sum(rows.values()), doc["rows"])
        for table, count in rows.items():
            self.assertEqual(self.query("SELECT count(*) FROM %s" % table), [[str(count)]])
        back = os.path.join(self.work, "back")
        self.migrate(self.url, "sqlite:" + back)
        self.assertEqual(differences(os.path.join(self.source, "store.db"),
                                     os.path.join(back, "store.db")), [])

    def test_kills(self):
        """Both ways, killed at random moments, a move goes on and nothing is lost or twice."""
        cut = self.migrate_with_kills("sqlite:" + self.source, self.url)
        if cut == KILLS:
            self.migrate("sqlite:" + self.source, self.url)
        back = os.path.join(self.work, "back")
        on_the_way_back = self.migrate_with_kills(self.url, "sqlite:" + back)
        if on_the_way_back == KILLS:
            self.migrate(self.url, "sqlite:" + back)
        self.assertGreater(cut + on_the_way_back, 0)
        self.assertEqual(differences(os.path.join(self.source, "store.db"),
                                     os.path.join(back, "store.db")), [])

    def test_changed_byte(self):
        """A byte that changed in the target is found at the end. Until then no server starts."""
        self.half_moved()
        self.assertEqual(len(self.query("SELECT 1 FROM hfd_meta WHERE key = 'move'")), 1)
        keys = os.path.join(self.work, "keys")
        done = real.lib.run("keygen", "--keys", keys)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = real.lib.run("serve", "--store", self.url, "--keys", keys, "--listen",
                            "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertIn("was not moved into this database to the end", done.stderr)
        self.query("UPDATE fleet SET spec = overlay(spec placing '~' from 5 for 1) WHERE seq = "
                   "(SELECT MIN(seq) FROM fleet)")
        said = self.migrate("sqlite:" + self.source, self.url, 73)
        self.assertIn("the rows of table fleet are not the same", said)
        self.assertEqual(len(self.query("SELECT 1 FROM hfd_meta WHERE key = 'move'")), 1)

    def test_refusals(self):
        empty = os.path.join(self.work, "empty")
        os.mkdir(empty)
        self.assertIn("has no database", self.migrate("sqlite:" + empty, self.url, 73))
        self.assertIn("same place", self.migrate(self.url, self.url, 2))
        self.migrate("sqlite:" + self.source, "postgres://hfd:hfd@127.0.0.1:1/hfd", 69)
        self.half_moved()
        self.assertIn("a part of the data of sqlite:",
                      self.migrate("sqlite:" + self.copy_of_source(), self.url, 73))
        self.assertIn("was not moved", self.migrate(self.url, "sqlite:" + empty, 73))
        self.migrate("sqlite:" + self.source, self.url)
        self.assertIn("has data already", self.migrate("sqlite:" + self.copy_of_source(), self.url,
                                                       73))

    def test_moved_before(self):
        """The same command after the end compares, and says that all is moved. PostgreSQL has
        statistics of all tables then. A target that was used is not touched.
        """
        source = "sqlite:" + self.source
        self.migrate(source, self.url)
        self.assertEqual(self.query("SELECT reltuples::int FROM pg_class WHERE oid ="
                                    " 'resource'::regclass"), [[str(STORED)]])
        self.assertEqual(self.query("SELECT value FROM hfd_meta WHERE key = 'moved'"), [[source]])
        self.assertIn("An earlier run moved all", self.migrate(source, self.url))
        self.assertIs(json.loads(self.migrate(source, self.url, 0, "--json"))["moved_before"], True)
        self.query("DELETE FROM resource WHERE seq = (SELECT MIN(seq) FROM resource)")
        said = self.migrate(source, self.url, 73)
        self.assertIn("table resource changed (rows %d and %d," % (STORED, STORED - 1), said)

    def copy_of_source(self):
        path = os.path.join(self.work, "copy%d" % time.monotonic_ns())
        shutil.copytree(self.source, path)
        return path

    def leave_drafts(self):
        """Folders that restores left: of a dead process, of one that lives, and one that is no
        draft. Returns what the living one holds.
        """
        for name in ("hfd-restore-1234", "hfd-restore-4321", "hfd-restore-x"):
            os.mkdir(os.path.join(self.work, name), 0o700)
        for name in ("store.db", "store.db-wal", "lock"):
            with open(os.path.join(self.work, "hfd-restore-1234", name), "wb") as f:
                f.write(b"rows")
        held = os.open(os.path.join(self.work, "hfd-restore-4321"), os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        return held

    def test_backup_and_restore(self):
        """A backup of PostgreSQL is the portable file: it is restored into a folder, and into
        another PostgreSQL.
        """
        plain = os.path.join(self.work, "plain")
        with real.lib.Server(data=plain) as server:
            client = real.lib.Client(server)
            self.addCleanup(client.close)
            for i in range(3):
                body = real.lib.cluster_input(name="cluster-%d" % i)
                self.assertEqual(client.put("/" + real.lib.guresid(), body).status, 202)
            server.sigterm()
        keys = os.path.join(plain, "keys")
        self.migrate("sqlite:" + plain, self.url)
        file = os.path.join(self.work, "hfd.backup")
        done = real.lib.run("backup", file, "--store", self.url, "--keys", keys)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 resources", done.stdout)
        self.assertEqual(sorted(os.listdir(self.work)), ["hfd.backup", "plain"])
        folder = os.path.join(self.work, "folder")
        done = real.lib.run("restore", file, "--data", folder, "--keys", keys)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(differences(os.path.join(plain, "store.db"),
                                     os.path.join(folder, "store.db")), [])
        done = real.lib.run("restore", file, "--store", self.url, "--keys", keys)
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertIn("has data already", done.stderr)
        other = self.server.create(self.database + "b")
        self.addCleanup(self.server.drop, self.database + "b")
        env = dict(real.lib.clean_env(), TMPDIR=self.work)
        held = self.leave_drafts()
        done = real.lib.run("restore", file, "--store", other, "--keys", keys, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("removed %s/hfd-restore-1234, which" % self.work, done.stderr)
        self.assertEqual(done.stderr.count("removed"), 1, done.stderr)
        self.assertEqual(sorted(n for n in os.listdir(self.work) if n.startswith("hfd-restore")),
                         ["hfd-restore-4321", "hfd-restore-x"])
        os.close(held)
        self.assertIn("restored 3 resources", done.stdout)
        back = os.path.join(self.work, "back")
        self.migrate(other, "sqlite:" + back)
        self.assertEqual(differences(os.path.join(plain, "store.db"),
                                     os.path.join(back, "store.db")), [])

    def command(self, status, words, *args):
        done = real.lib.run(*args)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(words, done.stdout + done.stderr)

    def test_objects_of_others(self):
        """A trigger of others refuses a database at the start and in a move, and never ran. doctor
        says so. An extension does not refuse. A further index is a finding of doctor. Without the
        right to make temporary tables, triggers are found as well.
        """
        keys, plain = os.path.join(self.work, "keys"), os.path.join(self.work, "plain")
        self.command(0, "", "keygen", "--keys", keys)
        self.command(0, "", "migrate", "--from", "sqlite:" + self.source, "--to", self.url)
        own = ("--store", self.url, "--keys", keys)
        self.query("CREATE EXTENSION pg_stat_statements")
        self.query("CREATE INDEX further ON resource (type)")
        self.command(3, "index further of table resource is not of hyperfleet-driver", "doctor",
                     *own)
        self.query("DROP INDEX further")
        self.server.query("CREATE ROLE weak LOGIN PASSWORD 'hfd'")
        self.query("REVOKE TEMPORARY ON DATABASE %s FROM PUBLIC" % self.database)
        self.query("GRANT ALL ON ALL TABLES IN SCHEMA public TO weak")
        self.query("GRANT ALL ON SCHEMA public TO weak")
        weak = ("--store", self.url.replace("//hfd:", "//weak:"), "--keys", keys)
        self.command(3, "GRANT TEMPORARY ON DATABASE", "doctor", *weak)
        self.query("CREATE FUNCTION evil() RETURNS trigger LANGUAGE plpgsql AS"
                   " 'BEGIN DELETE FROM resource; RETURN NULL; END'")
        self.query("CREATE TRIGGER evil AFTER INSERT OR UPDATE ON hfd_meta FOR EACH ROW"
                   " EXECUTE FUNCTION evil()")
        words = "trigger evil of table hfd_meta is not of hyperfleet-driver"
        for user in (own, weak):
            self.command(73, words, "serve", *user, "--listen", "127.0.0.1:0", "--ops-listen",
                         "127.0.0.1:0")
            self.command(3, words, "doctor", *user)
            self.command(2, words, "migrate", "--from", user[1], "--to", "sqlite:" + plain)
            self.command(2, words, "migrate", "--contract", *user)
        self.assertEqual(self.query("SELECT count(*) FROM resource"), [[str(STORED)]])
        self.query("DROP SCHEMA public CASCADE")
        self.query("CREATE SCHEMA public")
        self.query("CREATE TABLE hfd_meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        self.query("CREATE RULE evil AS ON INSERT TO hfd_meta DO INSTEAD NOTHING")
        self.command(2, "rule evil", "migrate", "--from", "sqlite:" + self.source, "--to", self.url)


if __name__ == "__main__":
    real.main()
