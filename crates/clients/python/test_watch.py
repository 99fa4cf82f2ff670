"""Watches through Python's client: from the state, resumed, and after history is gone."""

import base64
import random

from kubernetes import watch
from kubernetes.client.exceptions import ApiException

from support import GROUP, VERSION, ServerTest, define

# As much as a third of what etcd takes, so that what history keeps fills up; of noise, which cannot be made smaller there.
BIG = base64.b64encode(random.Random(1).randbytes(3 << 17)).decode()
# More writes than the history of any server here has room for.
WRITES_MAX = 400


class Watches(ServerTest):
    def events(self, count, **options):
        """The next events as `TYPE name`, and the watch that brought them."""
        stream, seen = watch.Watch(), []
        for event in stream.stream(
            self.core.list_namespaced_config_map, self.namespace, label_selector="made=here", timeout_seconds=30, **options
        ):
            if event["type"] == "BOOKMARK":
                continue
            seen.append(f"{event['type']} {event['object'].metadata.name}")
            if len(seen) == count:
                stream.stop()
        return seen, stream

    def test_python_watches_the_state_and_resumes(self):
        for name in ["a", "b"]:
            self.core.create_namespaced_config_map(self.namespace, self.config_map(name))
        seen, first = self.events(2)
        self.assertEqual(sorted(seen), ["ADDED a", "ADDED b"])
        version = self.core.list_namespaced_config_map(self.namespace).metadata.resource_version
        self.core.patch_namespaced_config_map("a", self.namespace, {"data": {"k": "v"}})
        self.core.delete_namespaced_config_map("b", self.namespace)
        self.core.create_namespaced_config_map(self.namespace, self.config_map("c"))
        later = ["MODIFIED a", "DELETED b", "ADDED c"]
        seen, second = self.events(2, resource_version=version)
        self.assertEqual(seen, later[:2])
        # From where that one was left.
        seen, _ = self.events(1, resource_version=second.resource_version)
        self.assertEqual(seen, later[2:])
        self.assertNotEqual(first.resource_version, second.resource_version)

    def test_python_gets_bookmarks_and_the_end_of_the_initial_events(self):
        self.core.create_namespaced_config_map(self.namespace, self.config_map("a"))
        stream, seen = watch.Watch(), []
        for event in stream.stream(
            self.core.list_namespaced_config_map,
            self.namespace,
            label_selector="made=here",
            send_initial_events=True,
            resource_version_match="NotOlderThan",
            allow_watch_bookmarks=True,
            timeout_seconds=30,
        ):
            raw = event["raw_object"]["metadata"]
            seen.append((event["type"], raw.get("annotations", {}).get("k8s.io/initial-events-end", "")))
            if event["type"] == "BOOKMARK":
                self.assertEqual(stream.resource_version, raw["resourceVersion"])
                stream.stop()
        self.assertEqual(seen, [("ADDED", ""), ("BOOKMARK", "true")])

    def test_python_is_told_once_that_history_is_gone(self):
        custom = define(self, "Page", "pages")
        where = (GROUP, VERSION, self.namespace, "pages")
        page = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Page", "metadata": {"name": "p"}}
        custom.create_namespaced_custom_object(*where, page)

        def gone():
            stream = watch.Watch()
            try:
                for _ in stream.stream(
                    custom.list_namespaced_custom_object, *where, resource_version="1", timeout_seconds=1
                ):
                    stream.stop()
            except ApiException as error:
                return error
            return None

        # kube-apiserver remembers nothing of a kind from before it was served; ours does while there is room.
        error, writes = gone(), 0
        while error is None and writes < WRITES_MAX:
            for _ in range(20):
                writes += 1
                custom.patch_namespaced_custom_object_status(
                    *where, "p", {"status": {"text": f"{writes} {BIG}"}}, _content_type="application/merge-patch+json"
                )
            error = gone()
        self.assertIsNotNone(error, f"history still reaches back after {writes} writes")
        self.assertEqual(error.status, 410)
        self.assertRegex(error.reason, r"^Expired: too old resource version: 1 \(\d+\)$")
        # The way out is a list.
        version = custom.list_namespaced_custom_object(*where)["metadata"]["resourceVersion"]
        custom.delete_namespaced_custom_object(*where, "p")
        stream, seen = watch.Watch(), []
        for event in stream.stream(
            custom.list_namespaced_custom_object, *where, resource_version=version, timeout_seconds=30
        ):
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            stream.stop()
        self.assertEqual(seen, [("DELETED", "p")])
