// A consumer on a running service: leases, retries, dead letters, order and its end.
import assert from "node:assert/strict";
import { Client, Consumer, DeadLetter, Retry } from "cirrusmq-client";

const client = new Client();
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
const countsOf = async (queue) =>
  (await client.call("GET /queues/{queue}", { path: { queue } })).counts;

async function consume(source, handler, enough, options = {}) {
  const seen = [];
  const errors = [];
  const onError = (error) => errors.push(error);
  const settings = { client, waitSeconds: 1, onError, ...options };
  const consumer = new Consumer(
    source,
    async (message) => {
      seen.push(message.text);
      return handler(message, seen);
    },
    settings,
  );
  const running = consumer.run();
  const ends = Date.now() + 60_000;
  while (!(await enough(seen, errors))) {
    assert.ok(Date.now() < ends, `it saw only ${seen}, ${errors}`);
    await pause(0.05);
  }
  consumer.stop();
  await running;
  return { seen, errors };
}

// A lease of two seconds is extended while a handler takes four: nobody else gets the message.
await client.createQueue("slow", { visibility_timeout_seconds: 2 });
await client.send("slow", "long work");
const slow = await consume("slow", () => pause(4), async (seen) => {
  const { active, inactive } = await countsOf("slow");
  return seen.length > 0 && active + inactive === 0;
});
assert.deepEqual(slow.seen, ["long work"]);
assert.deepEqual(slow.errors, []);

// What throws comes again; Retry says when; DeadLetter moves it; a wrong result is a failure.
await client.createQueue("dead");
await client.createQueue("mixed", { dead_letter: { queue: "dead", max_receives: 9 } });
await client.send("mixed", "throws", "again", "wrong", "dead");
const mixed = await consume(
  "mixed",
  (message, seen) => {
    if (message.text === "dead") return new DeadLetter("x".repeat(300));
    if (seen.filter((each) => each === message.text).length > 1) return;
    if (message.text === "throws") throw new Error("the first time");
    return message.text === "again" ? new Retry(0) : "a text";
  },
  (seen) => seen.length === 7,
  { workers: 4 },
);
assert.deepEqual(mixed.seen.sort(), ["again", "again", "dead", "throws", "throws", "wrong", "wrong"]);
assert.equal(mixed.errors.length, 2);
const [dead] = await client.receive("dead", { waitSeconds: 5 });
assert.equal(dead.dead_letter.reason.length, 256);

// In an ordered queue none of a group comes before the one that failed, and others go on.
await client.createQueue("steps", { ordered: true });
const groups = ["a", "b"];
await client.send("steps", ...groups.flatMap((group) =>
  ["1", "2", "3"].map((step) => ({ body: group + step, group })),
));
const steps = await consume(
  "steps",
  (message, seen) => {
    if (message.text === "a2" && seen.filter((each) => each === "a2").length === 1) {
      return new Retry(0);
    }
  },
  (seen) => seen.length === 7,
  { workers: 4 },
);
const of = (group) => steps.seen.filter((each) => each.startsWith(group));
assert.deepEqual(of("a"), ["a1", "a2", "a2", "a3"]);
assert.deepEqual(of("b"), ["b1", "b2", "b3"]);
console.log("done");
