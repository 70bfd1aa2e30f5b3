"""A server of generations, and a trainer that asks it twice."""

import argparse
import http.server
import socket
import time
import urllib.request

PORT = 8765


class Handler(http.server.BaseHTTPRequestHandler):
    served = 0

    def do_GET(self) -> None:
        body = f"reward for {self.path.lstrip('/')}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        print("served", self.path, flush=True)
        Handler.served += 1


def is_up(host: str) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex((host, PORT)) == 0


def ask(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read().decode())


parser = argparse.ArgumentParser()
parser.add_argument("mode", choices=("serve", "ask"))
parser.add_argument("host", nargs="?", default="")
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--requests", type=int, default=1)
options = parser.parse_args()
if options.mode == "serve":
    server = http.server.HTTPServer(("", PORT), Handler)
    while Handler.served < options.requests:
        server.handle_request()
else:
    while not is_up(options.host):
        time.sleep(0.5)
    for step in range(2):
        print(f"trainer {options.rank}:", ask(f"http://{options.host}:{PORT}/step-{step}"), flush=True)
