"""Objects through Python's generated client: verbs, errors, pages, patches, scale."""

import json

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from support import ServerTest, deployment


class Objects(ServerTest):
    def test_python_creates_reads_changes_and_deletes(self):
        made = self.core.create_namespaced_config_map(self.namespace, self.config_map("m", k="v"))
        self.assertEqual((made.metadata.name, made.data), ("m", {"k": "v"}))
        made.data["k"] = "w"
        changed = self.core.replace_namespaced_config_map("m", self.namespace, made)
        self.assertNotEqual(changed.metadata.resource_version, made.metadata.resource_version)
        self.assertEqual(self.core.read_namespaced_config_map("m", self.namespace).data, {"k": "w"})
        # A secret's data stays what it is; an object's times are times.
        secret = {"metadata": {"name": "s"}, "stringData": {"a": "text"}}
        self.core.create_namespaced_secret(self.namespace, secret)
        secret = self.core.read_namespaced_secret("s", self.namespace)
        self.assertEqual((secret.data, secret.type), ({"a": "dGV4dA=="}, "Opaque"))
        self.assertEqual(secret.metadata.creation_timestamp.utcoffset().total_seconds(), 0)
        gone = self.core.delete_namespaced_config_map("m", self.namespace)
        self.assertEqual((gone.status, gone.details.name), ("Success", "m"))
        here = self.core.list_namespaced_config_map(self.namespace, label_selector="made=here")
        self.assertEqual(here.items, [])

    def test_python_is_told_errors_as_status(self):
        self.core.create_namespaced_config_map(self.namespace, self.config_map("m", k="v"))
        first = self.core.read_namespaced_config_map("m", self.namespace)
        self.core.patch_namespaced_config_map("m", self.namespace, {"data": {"k": "w"}})
        bad = deployment("Bad", 1)
        bad["spec"]["selector"]["matchLabels"] = {"app": "other"}
        create, replace = self.core.create_namespaced_config_map, self.core.replace_namespaced_config_map
        for what, call, code, text, reason in [
            ("read", lambda: self.core.read_namespaced_config_map("n", self.namespace), 404, "Not Found", "NotFound"),
            ("twice", lambda: create(self.namespace, self.config_map("m")), 409, "Conflict", "AlreadyExists"),
            ("stale", lambda: replace("m", self.namespace, first), 409, "Conflict", "Conflict"),
            ("bad", lambda: self.apps.create_namespaced_deployment(self.namespace, bad), 422, "Unprocessable Entity", "Invalid"),
            ("page", lambda: self.core.list_namespaced_pod(self.namespace, _continue="nonsense"), 400, "Bad Request", "BadRequest"),
            ("none", lambda: create("nowhere", self.config_map("m")), 404, "Not Found", "NotFound"),
        ]:
            with self.subTest(what), self.assertRaises(ApiException) as raised:
                call()
            error = raised.exception
            body = json.loads(error.body)
            self.assertEqual((error.status, error.reason), (code, text))
            self.assertEqual((body["kind"], body["status"], body["code"], body["reason"]), ("Status", "Failure", code, reason))
            self.assertEqual(error.headers["Content-Type"], "application/json")
            if what == "read":
                self.assertEqual(body["message"], 'configmaps "n" not found')
                self.assertEqual(body["details"], {"name": "n", "kind": "configmaps"})
            if what == "bad":
                fields = sorted(cause["field"] for cause in body["details"]["causes"])
                self.assertEqual(fields, ["metadata.name", "spec.template.metadata.labels"])

    def test_python_lists_in_pages(self):
        for at in range(12):
            self.core.create_namespaced_config_map(self.namespace, self.config_map(f"m-{at:02}"))
        names, sizes, versions, token = [], [], set(), None
        while True:
            page = self.core.list_namespaced_config_map(
                self.namespace, label_selector="made=here", limit=5, _continue=token
            )
            names += [item.metadata.name for item in page.items]
            sizes.append(len(page.items))
            versions.add(page.metadata.resource_version)
            token = page.metadata._continue
            if not token:
                break
            if len(sizes) == 1:
                # Made between two pages: they show the state of the first.
                self.core.create_namespaced_config_map(self.namespace, self.config_map("m-05-late"))
        self.assertEqual((names, sizes), ([f"m-{at:02}" for at in range(12)], [5, 5, 2]))
        self.assertEqual(len(versions), 1)

    def test_python_patches(self):
        self.apps.create_namespaced_deployment(self.namespace, deployment("web", 1))

        def patched(body, **options):
            web = self.apps.patch_namespaced_deployment("web", self.namespace, body, **options)
            return [container.name for container in web.spec.template.spec.containers], web.spec.replicas

        def containers(*names):
            return {"spec": {"template": {"spec": {"containers": [{"name": name, "image": "i:1"} for name in names]}}}}

        # A dictionary is merged strategically: by the name of a container. A list is a JSON patch.
        self.assertEqual(patched(containers("side")), (["side", "main"], 1))
        self.assertEqual(patched([{"op": "replace", "path": "/spec/replicas", "value": 3}]), (["side", "main"], 3))
        self.assertEqual(
            patched(containers("only"), _content_type="application/merge-patch+json"), (["only"], 3)
        )
        dry = self.apps.patch_namespaced_deployment("web", self.namespace, {"spec": {"replicas": 9}}, dry_run="All")
        self.assertEqual(dry.spec.replicas, 9)
        self.assertEqual(self.apps.read_namespaced_deployment("web", self.namespace).spec.replicas, 3)

    def test_python_scales(self):
        self.apps.create_namespaced_deployment(self.namespace, deployment("web", 1))
        scale = self.apps.read_namespaced_deployment_scale("web", self.namespace)
        self.assertEqual((scale.kind, scale.spec.replicas, scale.status.selector), ("Scale", 1, "app=web"))
        scaled = self.apps.patch_namespaced_deployment_scale("web", self.namespace, {"spec": {"replicas": 4}})
        self.assertEqual(scaled.spec.replicas, 4)
        scaled.spec.replicas = 6
        self.apps.replace_namespaced_deployment_scale("web", self.namespace, scaled)
        web = self.apps.read_namespaced_deployment("web", self.namespace)
        self.assertEqual((web.spec.replicas, web.metadata.generation), (6, 3))
        status = {"status": {"replicas": 6, "readyReplicas": 5, "observedGeneration": 3}}
        web = self.apps.patch_namespaced_deployment_status("web", self.namespace, status)
        self.assertEqual((web.status.ready_replicas, web.spec.replicas), (5, 6))

    def test_python_deletes_collections_and_with_preconditions(self):
        for name in ["a", "b"]:
            self.core.create_namespaced_config_map(self.namespace, self.config_map(name))
        other = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="not-this"))
        with self.assertRaises(ApiException) as raised:
            self.core.delete_namespaced_config_map("a", self.namespace, body=other)
        self.assertEqual(raised.exception.status, 409)
        gone = self.core.delete_collection_namespaced_config_map(self.namespace, label_selector="made=here")
        self.assertIn(gone.kind, ["Status", "ConfigMapList"])
        left = self.core.list_namespaced_config_map(self.namespace, label_selector="made=here")
        self.assertEqual(left.items, [])
