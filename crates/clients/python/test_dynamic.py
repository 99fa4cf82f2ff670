"""Objects whose kind Python's client learns from the server, or is not told at all."""

import os
import tempfile

from kubernetes import dynamic, utils
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

from support import GROUP, VERSION, ServerTest, define

MANIFESTS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: runner}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  data: {k: v}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec: {containers: [{name: main, image: "registry.test/main:1"}]}
"""


class Kinds(ServerTest):
    def test_python_handles_custom_objects(self):
        custom = define(self, "Thing", "things")
        where = (GROUP, VERSION, self.namespace, "things")
        thing = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Thing", "metadata": {"name": "t"}, "spec": {}, "extra": 1}
        made = custom.create_namespaced_custom_object(*where, thing)
        self.assertEqual((made["spec"], "extra" in made), ({"size": 3}, False))
        patched = custom.patch_namespaced_custom_object(
            *where, "t", {"spec": {"size": 5}}, _content_type="application/merge-patch+json"
        )
        self.assertEqual(patched["spec"], {"size": 5})
        patched = custom.patch_namespaced_custom_object_status(
            *where, "t", {"spec": {"size": 6}, "status": {"seen": True}}, _content_type="application/merge-patch+json"
        )
        self.assertEqual((patched["spec"], patched["status"]), ({"size": 5}, {"seen": True}))
        with self.assertRaises(ApiException) as raised:
            thing["spec"], thing["metadata"] = {"size": 0}, {"name": "u"}
            custom.create_namespaced_custom_object(*where, thing)
        self.assertEqual(raised.exception.status, 422)
        self.assertIn("spec.size in body should be greater than or equal to 1", raised.exception.body)
        listed = custom.list_namespaced_custom_object(*where)
        self.assertEqual([item["metadata"]["name"] for item in listed["items"]], ["t"])
        custom.delete_namespaced_custom_object(*where, "t")
        with self.assertRaises(ApiException) as raised:
            custom.get_namespaced_custom_object(*where, "t")
        self.assertEqual(raised.exception.status, 404)

    def test_python_discovers_kinds(self):
        define(self, "Gadget", "gadgets")
        with tempfile.TemporaryDirectory() as cache:
            found = dynamic.DynamicClient(self.core.api_client, cache_file=os.path.join(cache, "found"))
            gadgets = found.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Gadget")
            gadget = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Gadget", "metadata": {"name": "g"}}
            gadgets.create(body=gadget | {"spec": {"size": 2}}, namespace=self.namespace)
            got = gadgets.get(name="g", namespace=self.namespace)
            self.assertEqual((got.kind, got.spec.size), ("Gadget", 2))
            with self.assertRaises(ConflictError):
                gadgets.create(body=gadget, namespace=self.namespace)
            # One of the server's own, found by its short name's owner, with its subresource.
            deployments = found.resources.get(api_version="apps/v1", kind="Deployment")
            self.assertEqual((deployments.name, deployments.short_names, deployments.namespaced), ("deployments", ["deploy"], True))
            self.assertIn("scale", deployments.subresources)
            maps = found.resources.get(api_version="v1", kind="ConfigMap")
            maps.create(body=self.config_map("m", k="v"), namespace=self.namespace)
            maps.patch(
                body={"data": {"k": "w"}}, name="m", namespace=self.namespace, content_type="application/merge-patch+json"
            )
            self.assertEqual(maps.get(name="m", namespace=self.namespace).data.k, "w")
            events = maps.watch(namespace=self.namespace, label_selector="made=here", timeout=30)
            event = next(events)
            self.assertEqual((event["type"], event["object"].metadata.name), ("ADDED", "m"))
            events.close()
            maps.delete(name="m", namespace=self.namespace)
            with self.assertRaises(NotFoundError):
                maps.get(name="m", namespace=self.namespace)

    def test_python_creates_from_yaml(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(MANIFESTS)
            file.flush()
            utils.create_from_yaml(self.core.api_client, file.name, namespace=self.namespace)
            self.assertEqual(self.core.read_namespaced_config_map("settings", self.namespace).data, {"k": "v"})
            self.assertEqual(self.apps.read_namespaced_deployment("web", self.namespace).spec.replicas, 2)
            self.core.read_namespaced_service_account("runner", self.namespace)
            with self.assertRaises(utils.FailToCreateError) as raised:
                utils.create_from_yaml(self.core.api_client, file.name, namespace=self.namespace)
        self.assertEqual([error.status for error in raised.exception.api_exceptions], [409, 409, 409])
