"""A long way to the daemon: passes TCP connections on and holds every byte back for a while.

usage: delay_proxy.py LISTEN_HOST:PORT TARGET_HOST:PORT DELAY_S JITTER_S

Each direction's delay is DELAY_S, give or take up to JITTER_S, newly drawn for each piece that was read; bytes keep
their order, as TCP's do. Prints "ready" on stderr once it listens.
"""

import asyncio
import random
import sys


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float, jitter: float) -> None:
    loop = asyncio.get_running_loop()
    held: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            due, piece = await held.get()
            await asyncio.sleep(due - loop.time())
            if not piece:
                break
            writer.write(piece)
            await writer.drain()
        writer.close()

    delivery = asyncio.create_task(deliver())
    try:
        while True:
            piece = await reader.read(1 << 16)
            await held.put((loop.time() + delay + random.uniform(-jitter, jitter), piece))
            if not piece:
                break
    except ConnectionError:
        await held.put((loop.time() + delay, b""))
    await asyncio.gather(delivery, return_exceptions=True)


async def _main(listen: str, target: str, delay: float, jitter: float) -> None:
    listen_host, listen_port = listen.rsplit(":", 1)
    target_host, target_port = target.rsplit(":", 1)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(target_host, int(target_port))
        await asyncio.gather(_pass_on(reader, far_writer, delay, jitter), _pass_on(far_reader, writer, delay, jitter))

    server = await asyncio.start_server(serve, listen_host, int(listen_port))
    print("ready", file=sys.stderr, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])))
