"""A reward server and the actors that ask it, as two parts of one heterogeneous job."""

import os
import socket
import sys
import time

PORT, ACTORS = 5567, 2

if sys.argv[1] == "critic":
    with socket.create_server(("", PORT)) as server:
        for _ in range(ACTORS):
            connection, _ = server.accept()
            with connection:
                connection.sendall(str(2 * int(connection.recv(64))).encode())
    print("critic answered", ACTORS, "actors", flush=True)
else:
    rank, host = int(os.environ["SLURM_PROCID"]), sys.argv[2]
    for _ in range(60):
        try:
            connection = socket.create_connection((host, PORT), timeout=10)
            break
        except OSError:
            time.sleep(0.5)
    with connection:
        connection.sendall(str(rank + 20).encode())
        print(f"actor {rank}: reward {connection.recv(64).decode()}", flush=True)
