// What a program may write: compiles as it is, and each mistake that is planted does not.
import { Client, Consumer, DeadLetter, Retry, isGenuine, type Received } from "cirrusmq-client";

export async function program(client: Client): Promise<number> {
  const queue = await client.createQueue("orders", { visibility_timeout_seconds: 60 });
  await client.send(queue.name, "two coffees", { body: new Uint8Array([1]), delay_seconds: 5 });
  await client.publish("news", { body: "headline", tags: ["paid"] });
  const held: Received[] = await client.receive({ queue: "orders" }, { max: 16 });
  const chosen = await client.receiveWhere("orders", "shop", "berlin", { visibilityTimeoutSeconds: 60 });
  held.push(...chosen.messages);
  await client.delete("orders", ...held.map((message) => message.receipt));
  const consumer = new Consumer("orders", (message) => {
    if (message.receive_count > 3) return new DeadLetter("too often");
    return message.text === "" ? new Retry(5) : undefined;
  });
  await consumer.run();
  const shown = await client.call("GET /queues/{queue}", { path: { queue: "orders" } });
  const page = await client.call("GET /queues");
  await isGenuine("whsec_x", new Headers(), "body");
  return shown.counts.active + page.queues.length;
}
