"""A server of generations, and a trainer that asks it twice."""

import argparse
import http.server
import time
import urllib.error
import urllib.request

PORT = 8765


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"reward for {self.path.lstrip('/')}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        print("served", self.path, flush=True)


def ask(url: str) -> str:
    for _ in range(120):
        try:
            return urllib.request.urlopen(url).read().decode()
        except urllib.error.URLError:
            time.sleep(0.5)
    raise SystemExit(f"no answer from {url}")


parser = argparse.ArgumentParser()
parser.add_argument("mode", choices=("serve", "ask"))
parser.add_argument("host", nargs="?", default="")
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--requests", type=int, default=1)
options = parser.parse_args()
if options.mode == "serve":
    server = http.server.HTTPServer(("", PORT), Handler)
    for _ in range(options.requests):
        server.handle_request()
else:
    for step in range(2):
        print(f"trainer {options.rank}:", ask(f"http://{options.host}:{PORT}/step-{step}"), flush=True)
