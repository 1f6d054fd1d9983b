"""Use the service as a Python program does, by redis-py or valkey-py, blocking or with asyncio, unchanged.

Prints what it got as JSON, a line before and one after a pause.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
import time
from typing import Any

package, port, protocol, namespace, key = sys.argv[1:]
module: Any = importlib.import_module(package)
errors: Any = importlib.import_module(package.removesuffix(".asyncio"))


async def finished(reply: Any) -> Any:
    """Return the reply of a client of either kind."""
    return await reply if inspect.isawaitable(reply) else reply


async def main() -> None:
    """Use the client."""
    client = getattr(module, errors.__name__.capitalize())(
        port=int(port), protocol=int(protocol), password=key, decode_responses=True
    )
    got: dict[str, Any] = {"first": await finished(client.incr(namespace))}
    got["row"] = await finished(client.incrby(namespace, 10))
    got["read"] = int(await finished(client.get(namespace)))
    for name, is_transaction, count in (("many", False, 1000), ("atomic", True, 2)):
        pipeline = client.pipeline(transaction=is_transaction)
        for _ in range(count):
            pipeline.incr(namespace)
        got[name] = await finished(pipeline.execute())
    got["id"] = await finished(client.execute_command("MINT", "sno"))
    got["ids"] = await finished(client.execute_command("MINT", "sno", "COUNT", 3))
    try:
        await finished(client.set(namespace, "1"))
    except errors.RedisError as error:
        got["refused"], got["is_typed"] = str(error), isinstance(error, errors.ResponseError)
    print(json.dumps(got), flush=True)

    sys.stdin.readline()
    for tries in range(101):
        try:
            print(json.dumps({"again": await finished(client.incr(namespace))}), flush=True)
            break
        except errors.ConnectionError:
            if tries == 100:
                raise
            time.sleep(0.1)
    await finished(client.aclose() if hasattr(client, "aclose") else client.close())


asyncio.run(main())
