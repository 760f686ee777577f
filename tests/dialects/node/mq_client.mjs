// Aliyun's SDK of RocketMQ over HTTP on the running service: another endpoint and key, no more.
// Prints `done`, or throws.
import assert from "node:assert/strict";
import sdk from "@aliyunmq/mq-http-sdk";

const [endpoint, keyId, secret, topic] = process.argv.slice(2);
const client = new sdk.MQClient(endpoint, keyId, secret);
const instance = "MQ_INST_1";

async function refused(call) {
  try {
    await call();
  } catch (error) {
    return error.Code;
  }
  throw new Error("it was not refused");
}

async function take(consume) {
  for (let tries = 0; tries < 12; tries += 1) {
    try {
      return (await consume()).body;
    } catch (error) {
      if (error.Code !== "MessageNotExist") throw error;
    }
  }
  throw new Error("no message came");
}

const consumer = client.getConsumer(instance, topic, "GID_node", "TagA||TagB");
assert.equal(await refused(() => consumer.consumeMessage(1)), "MessageNotExist");
const properties = new sdk.MessageProperties();
properties.putProperty("a", "1");
properties.messageKey("k1");
const producer = client.getProducer(instance, topic);
const body = "<a&b> \"两杯\" 😀";
const sent = await producer.publishMessage(body, "TagA", properties);
assert.equal(sent.code, 201);
const [got] = await take(() => consumer.consumeMessage(1, 5));
assert.equal(got.MessageId, sent.body.MessageId);
assert.equal(got.MessageBody, body);
assert.equal(got.MessageBodyMD5, sent.body.MessageBodyMD5);
assert.equal(got.MessageTag, "TagA");
assert.equal(got.MessageKey, "k1");
assert.equal(got.Properties.a, "1");
const partly = await consumer.ackMessage([got.ReceiptHandle, "odd"]);
assert.equal(partly.code, 404);
assert.equal(partly.body[0].ErrorCode, "ReceiptHandleError");
assert.equal(await refused(() => client.getProducer(instance, "none").publishMessage("x")),
  "TopicNotExist");

const ordered = client.getConsumer(instance, topic, "GID_node_ordered");
assert.equal(await refused(() => ordered.consumeMessageOrderly(1)), "MessageNotExist");
const shard = new sdk.MessageProperties();
shard.shardingKey("a");
for (const text of ["1", "2"]) await producer.publishMessage(text, "", shard);
for (const text of ["1", "2"]) {
  const [next] = await take(() => ordered.consumeMessageOrderly(1, 5));
  assert.equal(next.MessageBody, text);
  assert.equal((await ordered.ackMessage([next.ReceiptHandle])).code, 204);
}

const unsure = client.getTransProducer(instance, topic, "GID_node");
const half = new sdk.MessageProperties();
half.transCheckImmunityTime(10);
const first = await unsure.publishMessage("sure", "TagA", half);
assert.equal((await unsure.commit(first.body.ReceiptHandle)).code, 204);
const second = await unsure.publishMessage("unsure", "TagA", half);
const [check] = await take(() => unsure.consumeHalfMessage(1, 10));
assert.equal(check.MessageId, second.body.MessageId);
assert.equal((await unsure.rollback(check.ReceiptHandle)).code, 204);
const [committed] = await take(() => consumer.consumeMessage(1, 5));
assert.equal(committed.MessageBody, "sure");
assert.equal((await consumer.ackMessage([committed.ReceiptHandle])).code, 204);
console.log("done");
process.exit(0);
