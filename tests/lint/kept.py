"""Results of the analyser that are kept. A source that was clean is analysed again when it has
changed, or something that it includes.

The key of a result is a hash. It covers the source and the headers that the compiler read for it,
its compile command, and the tool with its options. Only clean results are kept. A source that is
newer than its object has no key: the list of its headers may be old.
"""
import hashlib
import json
import os
import shutil
import subprocess


def dependencies(build):
    """{object: headers and sources} of a build by ninja, where its notes are valid."""
    if shutil.which("ninja") is None or not os.path.exists(os.path.join(build, "build.ninja")):
        return {}
    done = subprocess.run(["ninja", "-C", build, "-t", "deps"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    found, current = {}, None
    for line in done.stdout.splitlines():
        if line.startswith("    "):
            if current is not None:
                current.append(os.path.join(build, line.strip()))
        elif line:
            current = [] if line.endswith("(VALID)") else None
            if current is not None:
                found[line.split(": #deps")[0]] = current
    return found


class Kept:
    def __init__(self, root, build, tool):
        self.root, self.folder = root, os.path.join(build, "tidy")
        self.tool, self.hashes, self.used = tool, {}, set()
        self.commands, self.objects = {}, {}
        deps = dependencies(build)
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            for entry in json.load(file):
                path = os.path.relpath(entry["file"], root)
                self.commands.setdefault(path, []).append(entry["command"])
                output = entry.get("output") or object_of(entry["command"])
                self.objects.setdefault(path, []).append(
                    (os.path.join(entry["directory"], output), deps.get(output)))
        os.makedirs(self.folder, exist_ok=True)

    def hash_of(self, path):
        if path not in self.hashes:
            with open(path, "rb") as file:
                self.hashes[path] = hashlib.sha256(file.read()).hexdigest()
        return self.hashes[path]

    def key(self, path):
        """The key of a source; None when it cannot be known."""
        whole = hashlib.sha256(self.tool.encode())
        try:
            for made, inputs in self.objects.get(path, [(None, None)]):
                if inputs is None:
                    return None
                time = os.stat(made).st_mtime_ns
                for name in sorted(set(inputs)):
                    if os.stat(name).st_mtime_ns > time:
                        return None
                    whole.update(self.hash_of(name).encode())
            for command in self.commands[path]:
                whole.update(command.encode())
        except OSError:
            return None
        return whole.hexdigest()

    def has(self, path):
        key = self.key(path)
        found = key is not None and os.path.exists(os.path.join(self.folder, key))
        if found:
            self.used.add(key)
        return found

    def add(self, path):
        key = self.key(path)
        if key is not None:
            self.used.add(key)
            with open(os.path.join(self.folder, key), "w", encoding="ascii"):
                pass

    def forget_others(self):
        """Removes what this run did not use."""
        for name in os.listdir(self.folder):
            if name not in self.used:
                os.unlink(os.path.join(self.folder, name))


def object_of(command):
    """The object of a compile command."""
    words = command.split()
    return words[words.index("-o") + 1] if "-o" in words else ""
