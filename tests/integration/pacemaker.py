"""PacemakerCluster documents for tests: the base document D (two healthy nodes) and edits of it."""
import copy

from lib import now_text, parse_time, time_text, utc_now

CLUSTER = "Healthy InService NodeCountAsExpected".split()
NODE = ("Healthy Online InService Active Ready Clean Member FencingAvailable "
        "FencingHealthy").split()
UNIT = "Healthy InService Managed Enabled Operational Active Started Schedulable".split()
HEALTHY = "Pacemaker cluster is healthy - all nodes have healthy critical resources"


def time_at(offset_s=0.0):
    return time_text(int((utc_now().timestamp() + offset_s) * 1e6))


def conditions(types, status="True"):
    return [{"type": t, "status": status, "lastTransitionTime": "2024-01-01T00:00:00Z",
             "reason": "AsExpected", "message": "fine"} for t in types]


def agent(name):
    return {"name": name, "method": "Redfish", "conditions": conditions(UNIT)}


def node(index):
    name = "master-%d" % index
    return {"nodeName": name,
            "addresses": [{"type": "InternalIP", "address": "192.168.1.%d" % (index + 1)}],
            "conditions": conditions(NODE),
            "resources": [{"name": n, "conditions": conditions(UNIT)} for n in ("Kubelet", "Etcd")],
            "fencingAgents": [agent(name + "_redfish")]}


def document(nodes=2, updated=None):
    """D, new at this moment unless a time is given."""
    return {"apiVersion": "etcd.openshift.io/v1alpha1", "kind": "PacemakerCluster",
            "metadata": {"name": "cluster"},
            "status": {"conditions": conditions(CLUSTER), "lastUpdated": updated or now_text(),
                       "nodes": [node(i) for i in range(nodes)]}}


def condition_of(thing, type_):
    return next(c for c in thing["conditions"] if c["type"] == type_)


def lost_fencing(doc, at=0):
    """The only agent of a node has failed."""
    doc = copy.deepcopy(doc)
    where = doc["status"]["nodes"][at]
    for thing, types in ((where["fencingAgents"][0], ("Healthy", "Operational")),
                         (where, ("Healthy", "FencingAvailable", "FencingHealthy")),
                         (doc["status"], ("Healthy",))):
        for type_ in types:
            condition_of(thing, type_)["status"] = "False"
    return doc


def earlier(text, by_s):
    return time_text(int((parse_time(text).timestamp() - by_s) * 1e6))
