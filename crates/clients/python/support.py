"""What the tests of Python's client share: a client, a namespace of the test's own, waiting for a condition, kinds.

In: KUBECONFIG; each test is run alone by `src/python.rs` of the crate around it.
Never: a sleep longer than a look; a wait without a limit.
"""

import os
import time
import unittest

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

# The group of kinds that tests define.
GROUP, VERSION = "python.forebay.test", "v1"

LIMIT = 120.0
LOOK = 0.01

IS_FOREBAY = os.environ.get("FOREBAY_TEST_SERVER") == "Forebay"


class ServerTest(unittest.TestCase):
    """A test in a namespace that is named for it."""

    maxDiff = None

    def setUp(self):
        config.load_kube_config(os.environ["KUBECONFIG"])
        self.core = client.CoreV1Api()
        self.apps = client.AppsV1Api()
        self.namespace = self._testMethodName.removeprefix("test_").replace("_", "-")[:60].strip("-")
        self.core.create_namespace({"metadata": {"name": self.namespace}})

    def tearDown(self):
        self.core.api_client.close()

    def config_map(self, name, **data):
        return {"metadata": {"name": name, "labels": {"made": "here"}}, "data": data}

    def until(self, what, look):
        """Looks until the answer is true; what it saw last is in the failure."""
        end = time.monotonic() + LIMIT
        while True:
            is_right, saw = look()
            if is_right:
                return saw
            if time.monotonic() > end:
                self.fail(f"{what}: not within {LIMIT} s; last: {saw}")
            time.sleep(LOOK)


def deployment(name, replicas):
    """A Deployment of one container."""
    labels = {"app": name}
    container = {"name": "main", "image": "registry.test/main:1", "ports": [{"containerPort": 80}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def define(test, kind, plural):
    """A namespaced kind with a size and a status; returns what handles its objects, once it is served."""
    size = {"type": "integer", "minimum": 1, "default": 3}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": size}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": VERSION, "served": True, "storage": True,
        "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
    }
    crds = client.ApiextensionsV1Api()
    crds.create_custom_resource_definition({
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "versions": [version],
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
        },
    })

    def established():
        conditions = crds.read_custom_resource_definition(f"{plural}.{GROUP}").status.conditions or []
        states = {condition.type: condition.status for condition in conditions}
        return states.get("Established") == "True", states

    test.until("the kind is established", established)
    custom = client.CustomObjectsApi()

    def served():
        try:
            custom.list_namespaced_custom_object(GROUP, VERSION, test.namespace, plural)
        except ApiException as error:
            return False, error
        return True, None

    test.until("the kind is served", served)
    return custom
