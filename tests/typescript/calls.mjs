// The calls of the client on a running service: exits with an error where one is not as promised.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Client, CirrusMQError } from "cirrusmq-client";

const client = new Client();
const rejects = (promise, code) =>
  assert.rejects(promise, (error) => error instanceof CirrusMQError && error.code === code);

// Texts and bytes come back as they were sent.
await client.createQueue("calls", { visibility_timeout_seconds: 60 });
const bytes = new Uint8Array([0, 255, 10]);
const sent = await client.send("calls", "text é", { body: bytes, attributes: { raw: bytes } });
assert.equal(sent.length, 2);
const held = await client.receive("calls", { max: 16, waitSeconds: 5 });
assert.deepEqual(held.map((each) => each.id).sort(), sent.map((each) => each.id).sort());
const [text, binary] = held[0].body === undefined ? [held[1], held[0]] : held;
assert.equal(text.text, "text é");
assert.deepEqual(binary.bytes, bytes);
assert.throws(() => binary.text, TypeError);
assert.equal(binary.attributes.raw.base64, "AP8K");

// Settling: extend, give back, delete; a receipt that is done is in `failed`.
const changed = await client.extend("calls", [text.receipt], 90);
assert.equal(changed.failed.length, 0);
await client.giveBack("calls", [changed.changed[0].receipt], { tried: false });
assert.deepEqual((await client.delete("calls", binary.receipt)).failed, []);
const [again] = await client.receive("calls", { waitSeconds: 5 });
assert.equal(again.receive_count, 1);
const { failed } = await client.deadLetter("calls", [again.receipt], "bad");
assert.equal(failed[0].code, "NoDeadLetterQueue");
assert.equal((await client.delete("calls", again.receipt)).deleted.length, 1);

// A request and its reply; null if nobody replies in time.
await client.createQueue("asked");
const asked = client.ask("asked", { body: "2+2", attributes: { unit: "kg" } }, 30);
const [request] = await client.receive("asked", { waitSeconds: 20 });
assert.ok(request.reply_by);
await client.reply("asked", request, { body: bytes, attributes: { raw: bytes } });
await rejects(client.reply("asked", request, "other"), "Conflict");
const reply = await asked;
assert.deepEqual(reply.bytes, bytes);
assert.equal(reply.attributes.raw.base64, "AP8K");
assert.equal(await client.ask("asked", "nobody", 1), null);

// Ordered queues: groups keep their order.
await client.createQueue("ordered", { ordered: true });
await client.send("ordered", { body: "1", group: "g" }, { body: "2", group: "g" });
const inOrder = await client.receive({ queue: "ordered" }, { max: 16, waitSeconds: 5 });
assert.deepEqual(inOrder.map((each) => each.text), ["1", "2"]);

// What has a value of an attribute, text or bytes, bit by bit.
await client.createQueue("chosen", { partitions: 1 });
for (const shop of ["berlin", "bonn", "berlin"]) {
  await client.send("chosen", { body: shop, attributes: { shop, raw: bytes } });
}
const first = await client.receiveWhere("chosen", "shop", "berlin");
assert.deepEqual(first.messages.map((each) => each.text), ["berlin"]);
assert.equal(first.seenAll, false);
const { after } = first;
const rest = await client.receiveWhere({ queue: "chosen" }, "shop", "berlin", { max: 16, after });
assert.deepEqual(rest.messages.map((each) => each.text), ["berlin"]);
assert.deepEqual([rest.seenAll, rest.after], [true, undefined]);
const byBytes = await client.receiveWhere("chosen", "raw", bytes, { max: 16 });
assert.deepEqual(byBytes.messages.map((each) => each.text), ["bonn"]);
await rejects(client.receiveWhere("ordered", "shop", "berlin"), "InvalidParameter");

// A topic with a group of consumers.
await client.createTopic("news");
await client.createSubscription("news", "group", { protocol: "pull" });
const [published] = await client.publish("news", { body: "headline", tags: ["paid"] });
assert.equal(published.matched, 1);
const group = { topic: "news", subscription: "group" };
const [headline] = await client.receive(group, { waitSeconds: 20 });
assert.equal(headline.text, "headline");
await client.delete(group, headline.receipt);

// A schedule, by the call of the contract.
const daily = { queue: "calls", cron: "0 8 * * *", message: { body: "count" } };
const made = await client.call("PUT /schedules/{schedule}", {
  path: { schedule: "daily" },
  body: daily,
});
assert.deepEqual([made.cron, made.time_zone, made.missed], ["0 8 * * *", "UTC", "one"]);
const listed = await client.call("GET /schedules", { query: { prefix: "da" } });
assert.deepEqual(listed.schedules.map((each) => each.name), ["daily"]);
await client.call("DELETE /schedules/{schedule}", { path: { schedule: "daily" } });
await rejects(
  client.call("GET /schedules/{schedule}", { path: { schedule: "daily" } }),
  "ScheduleNotFound",
);

// Any other call, and refusals with their code and parameter.
const page = await client.call("GET /queues", { query: { prefix: "call", limit: 10 } });
assert.deepEqual(page.queues.map((queue) => queue.name), ["calls"]);
await rejects(client.call("GET /queues/{queue}", { path: { queue: "nobody" } }), "QueueNotFound");
await assert.rejects(client.createQueue("other", { visibility_timeout_seconds: 0 }), {
  code: "InvalidParameter",
  parameter: "visibility_timeout_seconds",
  status: 400,
});
await rejects(new Client({ secret: "wrong" }).receive("calls"), "Unauthenticated");
await rejects(new Client({ url: "http://127.0.0.1:9" }).send("calls", "x"), "NoAnswer");

// A send whose answer is lost is repeated, and stores one message.
let lost = 0;
const losing = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const answer = await fetch(process.env.CIRRUSMQ_URL + request.url, {
    method: request.method,
    headers: { authorization: request.headers.authorization, "content-type": "application/json" },
    body: request.method === "GET" ? undefined : Buffer.concat(chunks),
  });
  const told = await answer.text();
  lost += 1;
  if (lost === 1) return request.socket.destroy();
  response.writeHead(answer.status, { "content-type": "application/json" }).end(told);
});
await new Promise((listening) => losing.listen(0, "127.0.0.1", listening));
const lossy = new Client({ url: `http://127.0.0.1:${losing.address().port}` });
await lossy.send("calls", "once");
assert.equal(lost, 2);
losing.close();
const once = await client.receive("calls", { max: 16, waitSeconds: 5 });
assert.deepEqual(once.map((each) => each.text), ["once"]);
console.log("done");
