#!/usr/bin/env python3
"""Records from a real API server what it tells of its kinds, into src/cluster/kinds.json (one line per kind and version).

    kubectl proxy --port 8001 &
    python3 record-kinds.py http://127.0.0.1:8001 > src/cluster/kinds.json
    python3 record-kinds.py http://127.0.0.1:8001 lists > tests/api/discovery.json      # what discovery is compared with

It answers: how are the built-in kinds called, what can be done with them, what are their columns and their zero values?
What cannot be asked of a running server (name and generation rules, selector fields) stands in src/cluster/rules.rs.
Rows are in the order of the server's own discovery.
"""
import json
import sys
import urllib.request

BASE = sys.argv[1]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def read(path, accept="application/json"):
    request = urllib.request.Request(BASE + path, headers={"Accept": accept})
    return urllib.request.urlopen(request).read().decode()


def zero(path):
    """The members beside the metadata in a bookmark, in the server's own order."""
    query = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
    for line in read(path + query).splitlines():
        event = json.loads(line)
        if event["type"] == "BOOKMARK":
            return {k: v for k, v in event["object"].items() if k not in ("kind", "apiVersion", "metadata")}
    sys.exit(f"no bookmark on {path}")


def columns(path):
    found = json.loads(read(path + "?limit=1", TABLE))["columnDefinitions"]
    return [[c["name"], c["type"], c["format"], c["priority"], described(c["description"])] for c in found]


def described(text):
    """Nearly every kind has a column of each of two members of the metadata: `src/cluster/kind.rs` has what is said of them."""
    for member in ("Name must be unique", "CreationTimestamp is a timestamp"):
        if text.startswith(member):
            return member
    return text


def kind_of(owner, group, version):
    return [owner["group"] or "", owner["version"] or "", owner["kind"]]


def row(group, version, resource):
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    path = f"{root}/{resource['resource']}"
    out = {
        "group": group, "version": version, "plural": resource["resource"],
        "kind": resource["responseKind"]["kind"], "singular": resource["singularResource"],
        "namespaced": resource["scope"] == "Namespaced", "verbs": resource["verbs"],
    }
    for ours, theirs in (("short", "shortNames"), ("categories", "categories")):
        if resource.get(theirs):
            out[ours] = resource[theirs]
    subs = [[s["subresource"], *kind_of(s["responseKind"], group, version), s["verbs"]] for s in resource.get("subresources", [])]
    if subs:
        out["subresources"] = subs
    if "list" in resource["verbs"]:
        out["columns"] = columns(path)
    if "watch" in resource["verbs"]:
        zeros = zero(path)
        if zeros:
            out["zero"] = zeros
    return json.dumps(out, separators=(",", ":"))


def lists():
    """The plain resource lists: another way to the same facts."""
    groups = json.loads(read("/apis"))["groups"]
    found = [json.loads(read("/api/v1"))]
    found += [json.loads(read("/apis/" + v["groupVersion"])) for g in groups for v in g["versions"]]
    return [json.dumps(one, separators=(",", ":")) for one in found]


if sys.argv[2:] == ["lists"]:
    sys.exit(print("[\n" + ",\n".join(lists()) + "\n]"))
rows = []
for root in ("/api", "/apis"):
    for group in json.loads(read(root, AGGREGATED))["items"]:
        for version in group["versions"]:
            for resource in version["resources"]:
                rows.append(row(group["metadata"].get("name", ""), version["version"], resource))
print("[\n" + ",\n".join(rows) + "\n]")
