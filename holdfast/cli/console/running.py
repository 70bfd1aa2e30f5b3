"""The console of a cluster, until it is interrupted or the cluster is gone."""

import contextlib
import functools
import secrets
import threading
import time
from collections.abc import Callable

from holdfast.cli.console.feed import Board, ClusterFacts, ClusterSource, Feed, Pace, Reading, Source
from holdfast.cli.console.page import served_files
from holdfast.cli.deployed import Context
from holdfast.cli.terminal import Interrupted
from holdfast.cli.views.incidents import LIST_PRICE, Fleet, Price
from holdfast.localcloud.home import installed_version

LOCAL, AWS = Pace(events_s=1.0, cluster_s=2.0), Pace(events_s=5.0, cluster_s=15.0)
LAST_S = 1.0
"""For open pages to get the last state."""


def run_console(context: Context, *, port: int, since: str, since_ns: int, announce: Callable[[str], None]) -> str:
    """
    Serve the page of a cluster; return the reason why it ended, or nothing after an interrupt.

    Raises:
        CommandError: the port cannot be listened on.
    """
    session = context.session
    reading = Reading(
        cloud=session.cloud,
        region=session.region,
        version=installed_version(),
        since=since,
        since_ns=since_ns,
    )
    pace = AWS if session.cloud == "aws" else LOCAL
    fleet = functools.partial(fleet_of, price=Price.of(LIST_PRICE, region=session.region))
    return serve(ClusterSource(context), reading=reading, pace=pace, fleet=fleet, port=port, announce=announce)


def serve(
    source: Source,
    *,
    reading: Reading,
    pace: Pace,
    fleet: Callable[[ClusterFacts], Fleet],
    port: int,
    announce: Callable[[str], None],
) -> str:
    from holdfast.cli.console.serving import Access, Application, ConsoleServer, listen  # slow to load

    with contextlib.closing(listen(port)) as listener:
        board = Board()
        access = Access(port=listener.getsockname()[1], secret=secrets.token_urlsafe(24))
        server = ConsoleServer(listener, Application(board, access, served_files()))
        serving = threading.Thread(target=server.serve_forever, name="console")
        serving.start()
        feed = Feed(source, board, reading=reading, fleet=fleet, pace=pace)
        gone = ""
        try:
            announce(access.url)
            gone = feed.run()
            if gone:
                time.sleep(LAST_S)
        except Interrupted:
            feed.stop()
        finally:
            board.close()
            time.sleep(0.2)  # open pages get the end of their stream
            server.shutdown()
            serving.join()
            server.server_close()
    return gone


def fleet_of(cluster: ClusterFacts, *, price: Price) -> Fleet:
    """Instance types and prices of a cluster."""
    return Fleet(
        type_of_node={node.instance_id: node.instance_type for node in cluster.nodes},
        type_of_group={group.name: group.instance_type for group in cluster.groups if group.instance_type},
        price=price,
    )
