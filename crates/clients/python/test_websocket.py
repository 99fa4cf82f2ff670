"""Watches over WebSocket, by the library that Python's client brings along for exec."""

import json

import websocket

from support import LIMIT, ServerTest

TEXT, BINARY, CLOSE, PONG = 1, 2, 8, 10


class WebSockets(ServerTest):
    def open(self, query, **options):
        settings = self.core.api_client.configuration
        url = settings.host.replace("https://", "wss://")
        trust = {"ca_certs": settings.ssl_ca_cert, "certfile": settings.cert_file, "keyfile": settings.key_file}
        path = f"/api/v1/namespaces/{self.namespace}/configmaps?watch=1&labelSelector=made%3Dhere&{query}"
        return websocket.create_connection(url + path, sslopt=trust, timeout=LIMIT, **options)

    def event(self, socket):
        opcode, data = socket.recv_data()
        self.assertEqual((opcode, data[-1:]), (TEXT, b"\n"))
        event = json.loads(data)
        return f"{event['type']} {event['object']['metadata'].get('name', '')}".strip(), event["object"]

    def test_python_watches_over_websocket(self):
        self.core.create_namespaced_config_map(self.namespace, self.config_map("a"))
        socket = self.open("allowWatchBookmarks=true&timeoutSeconds=30")
        self.assertEqual(socket.getsubprotocol(), None)
        self.assertEqual(self.event(socket)[0], "ADDED a")
        kind, end = self.event(socket)
        self.assertEqual((kind, end["metadata"]["annotations"]), ("BOOKMARK", {"k8s.io/initial-events-end": "true"}))
        self.core.patch_namespaced_config_map("a", self.namespace, {"data": {"k": "x" * 100_000}})
        self.core.delete_namespaced_config_map("a", self.namespace)
        self.assertEqual([self.event(socket)[0] for _ in range(2)], ["MODIFIED a", "DELETED a"])
        socket.ping("are you there")
        self.assertEqual(socket.recv_data(control_frame=True), (PONG, b"are you there"))
        socket.send("nobody asked for this")
        socket.send_close()
        self.assertEqual(socket.recv_data(control_frame=True), (CLOSE, b"\x03\xe8"))

    def test_python_gets_protobuf_over_websocket(self):
        self.core.create_namespaced_config_map(self.namespace, self.config_map("a"))
        accept = {"Accept": "application/vnd.kubernetes.protobuf"}
        socket = self.open("timeoutSeconds=3", header=accept, subprotocols=["base64.binary.k8s.io"])
        self.assertEqual(socket.getsubprotocol(), "base64.binary.k8s.io")
        opcode, data = socket.recv_data()
        # An event without a length before it, whatever was asked for as the subprotocol.
        self.assertEqual((opcode, data[:7]), (BINARY, b"\x0a\x05ADDED"))
        self.assertEqual(socket.recv_data(control_frame=True), (CLOSE, b"\x03\xe8"))

    def test_python_is_refused_a_websocket(self):
        for options, code in [
            ({"suppress_origin": True}, 403),
            ({"origin": "nowhere"}, 403),
            ({"subprotocols": ["a", "b"]}, 400),
        ]:
            with self.assertRaises(websocket.WebSocketBadStatusException) as refused:
                self.open("timeoutSeconds=1", **options)
            self.assertEqual(refused.exception.status_code, code, options)
        with self.assertRaises(websocket.WebSocketBadStatusException) as refused:
            self.open("sendInitialEvents=true")
        self.assertEqual(refused.exception.status_code, 422)
