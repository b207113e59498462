"""The findings that are allowed for now: lines "rule folder count" in allowed.txt.

Folders, not files, so that a file can be split or renamed. The numbers only go down; the file goes
when it is empty.
"""

import os

PLACE = "tests/lint/allowed.txt"
HEAD = "# Findings left to mend: rule, folder, count. Written by lint.py --renew-allowed.\n"


def by_folder(findings):
    """{folder: [finding]}, in the order of the paths."""
    found = {}
    for finding in sorted(findings):
        found.setdefault(os.path.dirname(finding[0]) or ".", []).append(finding)
    return found


def read(tree):
    """{(rule, folder): count}; empty without the file."""
    if not tree.exists(PLACE):
        return {}
    lines = [line.split() for line in tree.read(PLACE).splitlines() if not line.startswith("#")]
    return {(rule, folder): int(count) for rule, folder, count in lines}


def _total(counts, rule):
    return sum(count for (name, _), count in counts.items() if name == rule)


def renew(tree, rules):
    """Writes the numbers of today, if no rule is broken more often in all. Returns an exit status.
    """
    before, now = read(tree), {}
    for name, rule in rules.items():
        for folder, found in by_folder(rule(tree)).items():
            now[name, folder] = len(found)
    worse = [name for name in rules if before and _total(now, name) > _total(before, name)]
    for name in worse:
        print(f"{name}: {_total(now, name)} findings; {_total(before, name)} are allowed")
    if worse:
        return 1
    with open(os.path.join(tree.root, PLACE), "w", encoding="utf-8") as file:
        file.write(HEAD)
        file.writelines(f"{rule} {folder} {count}\n"
                        for (rule, folder), count in sorted(now.items()))
    return 0


def show(tree, rules, paths):
    """Prints the findings below some paths, and their number by rule."""
    for name, rule in rules.items():
        found = [
            f for f in rule(tree)
            if not paths or any(f[0] == p or f[0].startswith(p.rstrip("/") + "/") for p in paths)
        ]
        for path, line, message in sorted(found):
            print(f"{path}:{line}: {name}: {message}")
        if found:
            print(f"{name}: {len(found)}")
    return 0
