"""Does what systemd does for a socket unit: service_manager.py HOST:PORT PROGRAM [ARGUMENTS].

Listens there for as long as it lives, starts the program with that socket (sd_listen_fds(3)), and
starts it again when it ends. Prints "started N PID." each time, and ends when it has ended twice.
"""

import os
import signal
import socket
import sys

host, port = sys.argv[1].rsplit(":", 1)
listening = socket.socket()
listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listening.bind((host, int(port)))
listening.listen()
starts = 0
while True:
    pid = os.fork()
    if pid == 0:
        fd = os.dup(listening.fileno())
        os.dup2(fd, 3)
        os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
        # Python ignores it, and the child would inherit that.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execv(sys.argv[2], sys.argv[2:])
    starts += 1
    print(f"started {starts} {pid}.", flush=True)
    os.waitpid(pid, 0)
    if starts == 2:
        break
