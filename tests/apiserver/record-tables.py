#!/usr/bin/env python3
"""Records rows of Tables from a real API server, into src/cluster/printer/tables.json (one line per object).

    kubectl proxy --port 8001 & python3 record-tables.py http://127.0.0.1:8001 > src/cluster/printer/tables.json

It answers: which cells does this object have there? It makes the objects below, reads each back as a row, and deletes them.
Each is made at one path; a second value, if there is one, is patched into its status.
"""
import json
import sys
import time
import urllib.request

BASE = sys.argv[1]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CORE, NS = "/api/v1", "/api/v1/namespaces/default"
CONTAINERS = [{"name": "c", "image": "i"}, {"name": "d", "image": "j:2"}]
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
SELECTOR = {"matchLabels": {"a": "b"}}
RUNNING = {"ready": True, "restartCount": 0, "image": "i", "imageID": "", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}


def ended(code, reason, **more):
    return {"ready": False, "restartCount": 3, "image": "i", "imageID": "",
            "state": {"terminated": {"exitCode": code, "reason": reason, **more}},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:00:00Z"}}}


def waiting(reason):
    return {"ready": False, "restartCount": 1, "image": "i", "imageID": "", "state": {"waiting": {"reason": reason}}}


def pod(phase="Pending", statuses=(), inits=(), conditions=(), init_specs=(), spec=(), **status):
    named = [{"name": c["name"], **s} for c, s in zip(CONTAINERS, statuses)]
    named_inits = [{"name": c["name"], **s} for c, s in zip(init_specs, inits)]
    body = {"spec": {"containers": CONTAINERS, "initContainers": list(init_specs), **dict(spec)}}
    told = {"phase": phase, "containerStatuses": named, "initContainerStatuses": named_inits,
            "conditions": [{"type": t, "status": s, "reason": r} for t, s, r in conditions], **status}
    return f"{NS}/pods", body, told


INITS = [{"name": "x", "image": "i"}, {"name": "y", "image": "i", "restartPolicy": "Always"}]
OBJECTS = [
    pod(),
    pod("Running", [RUNNING, RUNNING], conditions=[("Ready", "True", "")], podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}], spec={"nodeName": "n", "readinessGates": [{"conditionType": "Ready"}, {"conditionType": "G"}]}.items()),
    pod("Running", [RUNNING, ended(1, "Error")]),
    pod("Running", [ended(0, "Completed"), RUNNING]),
    pod("Running", [ended(0, "Completed"), RUNNING], conditions=[("Ready", "True", "")]),
    pod("Running", [waiting("CrashLoopBackOff"), RUNNING]),
    pod("Failed", [ended(137, "", signal=9), ended(2, "")]),
    pod("Succeeded", [ended(0, "Completed"), ended(0, "Completed")]),
    pod("Failed", reason="Evicted"),
    pod(inits=[waiting("PodInitializing")], init_specs=INITS),
    pod(inits=[waiting("ImagePullBackOff")], init_specs=INITS),
    pod(inits=[ended(3, "")], init_specs=INITS),
    pod("Running", [RUNNING, RUNNING], inits=[ended(0, "Completed"), {**RUNNING, "started": True}], init_specs=INITS, conditions=[("Initialized", "True", "")]),
    pod(conditions=[("PodScheduled", "False", "SchedulingGated")]),
    ("/apis/apps/v1/namespaces/default/deployments", {"spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["c", "b"]}]}, "template": TEMPLATE}}, {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2}),
    ("/apis/apps/v1/namespaces/default/statefulsets", {"spec": {"replicas": 2, "serviceName": "s", "selector": SELECTOR, "template": TEMPLATE}}, {"replicas": 2, "readyReplicas": 1}),
    ("/apis/apps/v1/namespaces/default/replicasets", {"spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}}, {"replicas": 2, "readyReplicas": 1}),
    ("/apis/apps/v1/namespaces/default/daemonsets", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}, {"desiredNumberScheduled": 4, "currentNumberScheduled": 3, "numberReady": 2, "updatedNumberScheduled": 1, "numberAvailable": 1, "numberMisscheduled": 0}),
    ("/apis/apps/v1/namespaces/default/controllerrevisions", {"revision": 3, "data": {}, "metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u", "controller": True}]}}),
    (f"{NS}/replicationcontrollers", {"spec": {"replicas": 1, "selector": {"a": "b"}, "template": TEMPLATE}}, {"replicas": 1, "readyReplicas": 1}),
    (f"{NS}/podtemplates", {"template": TEMPLATE}),
    ("/apis/batch/v1/namespaces/default/jobs", {"spec": {"completions": 4, "template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}}}, {"succeeded": 2, "startTime": "2026-01-01T00:00:00Z"}),
    ("/apis/batch/v1/namespaces/default/jobs", {"spec": {"parallelism": 3, "suspend": True, "template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}}}),
    ("/apis/batch/v1/namespaces/default/cronjobs", {"spec": {"schedule": "* * * * *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": {"template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}}}}}, {"lastScheduleTime": "2026-01-01T00:00:00Z"}),
    ("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "maxReplicas": 5, "metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
        {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "10"}}},
        {"type": "Object", "object": {"metric": {"name": "m"}, "describedObject": {"kind": "Service", "name": "s"}, "target": {"type": "Value", "value": "1k"}}}]}}, {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 30, "averageValue": "3"}}}]}),
    (f"{NS}/services", {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "name": "x"}, {"port": 53, "protocol": "UDP", "name": "y"}]}}),
    (f"{NS}/services", {"spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30123}]}}, {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}, {"hostname": "h.example.com"}]}}),
    (f"{NS}/services", {"spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30124}]}}),
    (f"{NS}/services", {"spec": {"type": "ExternalName", "externalName": "x.example.com"}}),
    (f"{NS}/services", {"spec": {"clusterIP": "None"}}),
    (f"{NS}/endpoints", {"subsets": [{"addresses": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}], "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}]}),
    (f"{NS}/endpoints", {}),
    ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", {"addressType": "IPv4", "ports": [{"port": 80, "name": "p"}, {"name": "q"}], "endpoints": [{"addresses": [f"192.0.2.{n}"]} for n in range(1, 6)]}),
    ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", {"addressType": "IPv4", "endpoints": []}),
    ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", {"spec": {"ingressClassName": "c", "tls": [{"hosts": ["h"]}], "rules": [{"host": f"h{n}.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}} for n in range(5)]}}, {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}),
    ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}),
    ("/apis/networking.k8s.io/v1/ingressclasses", {"metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}, "spec": {"controller": "e.com/c", "parameters": {"apiGroup": "g.com", "kind": "K", "name": "p", "scope": "Cluster"}}}),
    ("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}),
    ("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", {"spec": {"podSelector": {}}}),
    (f"{CORE}/nodes", {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "x"}}, "spec": {"unschedulable": True}}, {"conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}], "nodeInfo": {"kubeletVersion": "v1.36.2", "kernelVersion": "6.1", "architecture": "amd64", "osImage": "os", "containerRuntimeVersion": "c://1", "machineID": "", "systemUUID": "", "bootID": "", "kubeProxyVersion": "", "operatingSystem": "linux"}}),
    (f"{CORE}/nodes", {}),
    (f"{CORE}/persistentvolumes", {"spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "hostPath": {"path": "/x"}, "storageClassName": "fast", "claimRef": {"namespace": "default", "name": "c"}}}),
    (f"{NS}/persistentvolumeclaims", {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v", "storageClassName": "fast"}}, {"phase": "Bound", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"]}),
    (f"{NS}/persistentvolumeclaims", {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    (f"{NS}/configmaps", {"data": {"a": "b"}, "binaryData": {"x": "eA=="}}),
    (f"{NS}/secrets", {"data": {"a": "eA=="}}),
    (f"{NS}/serviceaccounts", {}),
    (f"{NS}/limitranges", {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}}),
    (f"{NS}/resourcequotas", {"spec": {"hard": {"pods": "10", "limits.cpu": "2"}}}, {"hard": {"pods": "10", "limits.cpu": "2"}, "used": {"pods": "1", "limits.cpu": "0"}}),
    (f"{NS}/events", {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default", "fieldPath": "spec.containers{c}"}, "reason": "Because", "message": " text ", "type": "Normal", "source": {"component": "me", "host": "h"}, "count": 4, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-02-01T00:00:00Z"}),
    ("/apis/events.k8s.io/v1/namespaces/default/events", {"regarding": {"kind": "Pod", "namespace": "default"}, "reason": "Because", "note": "n", "type": "Normal", "action": "Do", "reportingController": "e.com/c", "reportingInstance": "i", "eventTime": "2026-01-01T00:00:00.000000Z", "series": {"count": 7, "lastObservedTime": "2026-02-01T00:00:00.000000Z"}}),
    ("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "e.com/p", "allowVolumeExpansion": True}),
    ("/apis/storage.k8s.io/v1/csidrivers", {"spec": {"tokenRequests": [{"audience": "a"}]}}),
    ("/apis/storage.k8s.io/v1/csinodes", {"spec": {"drivers": [{"name": "d", "nodeID": "n"}]}}),
    ("/apis/storage.k8s.io/v1/volumeattachments", {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"spec": {"maxUnavailable": "20%", "selector": SELECTOR}}),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", {"rules": []}),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "User", "name": "w", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": {"holderIdentity": "me"}}),
    ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 7}),
    ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {"webhooks": []}),
    ("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", {"spec": {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 9000, "distinguisherMethod": {"type": "ByUser"}}}),
    ("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Queue", "queuing": {"queues": 8, "handSize": 4, "queueLengthLimit": 10}}}}}),
    ("/apis/resource.k8s.io/v1/deviceclasses", {"spec": {}}),
    ("/apis/networking.k8s.io/v1/servicecidrs", {"spec": {"cidrs": ["192.168.7.0/24"]}}),
]


def ask(method, path, body=None, accept="application/json", content="application/json"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(BASE + path, data, {"Accept": accept, "Content-Type": content}, method=method)
    try:
        return json.loads(urllib.request.urlopen(request).read())
    except urllib.error.HTTPError as error:
        sys.exit(f"{method} {path}: {error.read().decode()[:600]}\n{body}")


def record(at, path, body, status=None):
    name = f"r{at}"
    made = {**body, "metadata": {**body.get("metadata", {}), "name": name}}
    ask("POST", path, made)
    if status:
        ask("PATCH", f"{path}/{name}/status", {"status": status}, content="application/merge-patch+json")
    one = f"{path}/{name}"
    table = ask("GET", f"{one}?includeObject=Object", accept=TABLE)
    now = int(time.time())
    row = table["rows"][0]
    # Rows are made of what is stored: for events, the form of the core group.
    stored = ask("GET", one.replace("/apis/events.k8s.io/v1", CORE))
    ask("DELETE", one + "?gracePeriodSeconds=0")
    for unneeded in ("managedFields", "uid", "resourceVersion"):
        stored["metadata"].pop(unneeded, None)
    parts = path.split("/")
    group, version = ("", parts[2]) if parts[1] == "api" else (parts[2], parts[3])
    return json.dumps({"group": group, "version": version, "plural": parts[-1], "now": now, "cells": row["cells"], "object": stored}, separators=(",", ":"))


print("[\n" + ",\n".join(record(at, *parts) for at, parts in enumerate(OBJECTS)) + "\n]")
