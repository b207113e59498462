"""The data set of the EMCO status query's own examples: three apps on two clusters, as adapters
report them, and the golden documents that follow.
"""
import json
import os
import re

from lib import now_text, condition

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "status")
PROVIDER = "vfw-cluster-provider"
APPS = {
    "packetgen": [("apps", "Deployment", "fw0-packetgen"), ("", "Service", "packetgen-service")],
    "firewall": [("apps", "Deployment", "fw0-firewall")],
    "sink": [("apps", "Deployment", "fw0-sink"), ("", "ConfigMap", "sink-configmap"),
             ("", "Service", "sink-service")],
}
INTENTS = [("ProviderNetwork", "emco-private-net"), ("Network", "protected-private-net"),
           ("ProviderNetwork", "unprotected-private-net")]


def objects(app, places=("edge01", "edge02"), **more):
    """data.objects of an adapter."""
    return [dict({"GVK": {"Group": group, "Version": "v1", "Kind": kind}, "name": name,
                  "cluster-provider": PROVIDER, "cluster": place}, **more)
            for place in places for group, kind, name in APPS[app]]


def intents():
    return [{"GVK": {"Group": "k8s.plugin.opnfv.org", "Version": "v1alpha1", "Kind": kind},
             "name": name} for kind, name in INTENTS]


def report(adapter, generation, listed, applied=True, health=True, finalized=None):
    """A report with objects."""
    conditions = [condition("Available", applied is True), condition("Applied", applied),
                  condition("Health", health)]
    if finalized is not None:
        conditions.append(condition("Finalized", finalized))
    return {"adapter": adapter, "observed_generation": generation, "observed_time": now_text(),
            "conditions": conditions, "data": {"objects": listed}}


def golden(name):
    """A golden document, as text."""
    with open(os.path.join(FOLDER, name + ".json"), encoding="utf-8") as f:
        return f.read()


def plain(body, id_="vfw"):
    """An answer with place-holders for what differs from run to run. The order stays."""
    doc = json.loads(body)
    contexts = {}
    for action in doc["state"]["Actions"]:
        if action["ContextId"]:
            action["ContextId"] = contexts.setdefault(action["ContextId"],
                                                      ("FIRST", "SECOND")[len(contexts) % 2])
        action["TimeStamp"] = re.sub(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,2}[1-9])?Z$", "T",
                                     action["TimeStamp"])
    doc["id"] = id_
    return doc


def text(doc):
    return json.dumps(doc, indent=1) + "\n"
