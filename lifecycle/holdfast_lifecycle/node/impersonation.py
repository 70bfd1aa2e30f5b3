"""Work in users' folders with the user's rights: links there cannot redirect root."""

import os
from typing import Callable

from holdfast_lifecycle.model import StepError, User


def as_user(user: User, work: Callable[[], None]) -> str:
    """Run ``work`` in a child process as the user; return its complaint, empty on success."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        complaint = "the process ended early"
        try:
            os.setgroups([])
            os.setgid(user.uid)
            os.setuid(user.uid)
            os.umask(0o022)
            work()
            complaint = ""
        except StepError as error:
            complaint = error.seen
        except OSError as error:
            complaint = str(error)
        finally:
            os.write(writing, complaint.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as report:
        complaint = report.read()
    os.waitpid(pid, 0)
    return complaint
