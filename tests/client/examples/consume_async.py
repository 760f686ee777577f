"""Send and consume with asyncio: fifty handlers side by side in one thread."""

from __future__ import annotations

import asyncio

from cirrusmq_client import AsyncClient, AsyncConsumer, AsyncProducer, Received


async def handle(message: Received) -> None:
    await asyncio.sleep(0.1)  # a call of another service
    print(message.text, flush=True)


async def main() -> None:
    async with AsyncClient() as client:
        async with AsyncProducer(client) as producer:
            futures = [await producer.send_soon("orders", f"order {n}") for n in range(100)]
            await asyncio.gather(*futures)
        await AsyncConsumer("orders", handle, client=client, workers=50).run()


asyncio.run(main())
