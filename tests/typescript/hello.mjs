// Sends a message and handles it, as the manual shows it.
import { Client, Consumer, DeadLetter, Retry } from "cirrusmq-client";

const client = new Client(); // CIRRUSMQ_URL, CIRRUSMQ_ACCESS_KEY_ID, CIRRUSMQ_SECRET
await client.createQueue("orders");
await client.send("orders", "two coffees", { body: "one tea", attributes: { table: "7" } });

const consumer = new Consumer("orders", async (message) => {
  if (message.text === "") return new DeadLetter("an empty order"); // never again
  if (message.text === "soup") return new Retry(60); // in a minute; an error: by the policy
  console.log("handled", message.text, message.attributes.table ?? "");
});
await consumer.run(); // until SIGTERM
