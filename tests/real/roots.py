"""Bare Debian systems for tests: a root that debootstrap made, and programs in it.

A root is a copy of one base below build/real. Programs run in it with namespaces of their own, so
nothing that they mount or start outlives the test. Needs root; a test is skipped without.
"""
import os
import shutil
import subprocess
import tempfile
import time

import real

SUITE = "bookworm"
MIRROR = os.environ.get("HFD_DEBIAN_MIRROR", "http://deb.debian.org/debian")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
BOOT_S = 120
# Mounts of a root, in a mount namespace that is thrown away. $1 is the root.
ENTER = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t tmpfs -o mode=755 tmpfs "$1/dev"
for n in null zero full random urandom tty; do
    touch "$1/dev/$n"
    mount --bind "/dev/$n" "$1/dev/$n"
done
mkdir "$1/dev/shm" "$1/dev/pts"
mount -t tmpfs tmpfs "$1/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
ln -s pts/ptmx "$1/dev/ptmx"
ln -s /proc/self/fd "$1/dev/fd"
mount -t tmpfs -o mode=755 tmpfs "$1/run"
"""
RUN = ENTER + """
root=$1
shift
exec chroot "$root" env -i HOME=/root PATH=%s DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"
""" % PATH
# systemd as process 1, or a process that waits. $2 is a folder of the cgroup2 hierarchy.
BOOT = """
echo $$ >"$2/cgroup.procs"
exec unshare -m -p -n -u -i -C -f --kill-child sh -c '%s
mount -t tmpfs tmpfs "$1/sys"
mkdir -p "$1/sys/fs/cgroup"
mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
hostname bare
ip link set lo up
cd "$1"
mkdir -p .old
pivot_root . .old
umount -l /.old
mount --make-rshared / # as systemd does outside a container: credentials are mounted by a child
exec env -i container=hyperfleet PATH=%s /lib/systemd/systemd --system
' sh "$1"
""" % (ENTER, PATH)


def base():
    """The folder of the base; made once."""
    if os.geteuid() != 0:
        real.skip("a bare Debian needs root")
    if not shutil.which("unshare"):
        real.skip("unshare is not installed: apt-get install util-linux")
    if subprocess.run(["unshare", "-m", "-p", "-f", "mount", "-t", "tmpfs", "none", "/mnt"],
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        real.skip("namespaces and mounts are not allowed here")
    tool = real.debian("debootstrap")
    return os.path.dirname(os.path.dirname(real.install(
        "root-" + SUITE, lambda folder: [[tool, "--variant=minbase", SUITE, folder, MIRROR]],
        "etc/debian_version")))


class Root:
    """A copy of the base."""

    def __init__(self, place=None):
        self.folder = tempfile.mkdtemp(prefix="hfd-root-", dir=place)
        self.path = os.path.join(self.folder, "root")
        real.run(["cp", "-a", "--reflink=auto", base(), self.path])
        shutil.copy("/etc/resolv.conf", self.inside("/etc/resolv.conf"))
        with open(self.inside("/etc/apt/apt.conf.d/90test"), "w", encoding="utf-8") as f:
            f.write('APT::Install-Recommends "false";\nAcquire::Retries "2";\n'
                    'APT::Sandbox::User "root";\nAPT::Keep-Downloaded-Packages "true";\n'
                    'Binary::apt::APT::Keep-Downloaded-Packages "true";\n')

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def inside(self, path):
        return self.path + path

    def exists(self, path):
        return os.path.lexists(self.inside(path))

    def read(self, path):
        with open(self.inside(path), encoding="utf-8") as f:
            return f.read()

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.inside(path)), exist_ok=True)
        with open(self.inside(path), "w", encoding="utf-8") as f:
            f.write(text)

    def run(self, *argv, deadline_s=600, **kw):
        """Runs a program in the root, with the network of this machine."""
        return real.run(["unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", RUN, "sh",
                         self.path, *argv], deadline_s, **kw)

    def update(self):
        """Fetches the lists of packages, or skips the test."""
        try:
            self.run("apt-get", "-q", "update")
        except (AssertionError, subprocess.TimeoutExpired) as e:
            real.skip("the mirror %s cannot be reached: %s" % (MIRROR, str(e)[-300:]))


class Machine:
    """A root whose process 1 is systemd, without any network but its own loopback."""

    def __init__(self, root):
        self.root = root
        self.cgroup = "/sys/fs/cgroup"
        if not os.path.exists(self.cgroup + "/cgroup.procs"):
            self.cgroup += "/unified"
        if not os.path.exists(self.cgroup + "/cgroup.procs") or not shutil.which("ip"):
            real.skip("systemd cannot be started: no cgroup2 or no ip here")
        self.cgroup += "/hfd-%d" % os.getpid()
        root.write("/etc/machine-id", "")
        try:
            os.mkdir(self.cgroup)
        except OSError as e:
            real.skip("systemd cannot be started: %s" % e)
        self.proc = subprocess.Popen(["sh", "-c", BOOT, "sh", root.path, self.cgroup],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE)
        self.boot()

    def boot(self):
        end = time.monotonic() + BOOT_S
        while time.monotonic() < end and self.proc.poll() is None:
            if self.first() and self.run("systemctl", "is-system-running")[1].strip() in (
                    "running", "degraded"):
                return
            time.sleep(0.1)
        if self.proc.poll() is None:
            self.proc.kill()
        reason = self.proc.stderr.read().decode("utf-8", "replace")[-300:]
        self.close()
        real.skip("systemd cannot be started here: %s" % reason)

    def first(self):
        """The id of its process 1; None while there is none."""
        try:
            with open("/proc/%d/task/%d/children" % (self.proc.pid, self.proc.pid),
                      encoding="ascii") as f:
                children = f.read().split()
            if children and os.readlink("/proc/%s/exe" % children[0]).endswith("/systemd"):
                return children[0]
        except OSError:
            pass
        return None

    def run(self, *argv, deadline_s=120, **kw):
        """Runs a program in it; returns its status and what it wrote."""
        done = subprocess.run(
            ["nsenter", "-t", self.first(), "-a", "-r", "-w", "env", "-i", "HOME=/root",
             "PATH=" + PATH, "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *argv],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=deadline_s, check=False, **kw)
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def close(self):
        if self.proc.poll() is None:
            self.proc.kill()  # and with it all that runs there: --kill-child
        self.proc.wait()
        self.proc.stderr.close()
        for folder, _, _ in os.walk(self.cgroup, topdown=False):
            for _ in range(100):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.05)  # its processes are about to be gone
