"""A server that waits for its storage, and clients that wait for the server."""

import os
import socket
import threading
import time


def serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            time.sleep(0.01)  # a disk, or another service
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 20_000)


listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, args=(listener,), daemon=True).start()
for _ in range(int(os.environ.get("STEPS", 10**12))):
    with socket.create_connection(listener.getsockname()) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        while client.recv(65_536):
            pass
