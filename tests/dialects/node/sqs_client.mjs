// AWS's SDK for JavaScript, version 3, on the running service: another endpoint and key, no more.
// It checks the MD5 of each message itself. Prints `done`, or throws.
import assert from "node:assert/strict";
import {
  SQSClient, ChangeMessageVisibilityCommand, CreateQueueCommand, DeleteMessageBatchCommand,
  DeleteQueueCommand, GetQueueAttributesCommand, QueueDoesNotExist, ReceiveMessageCommand,
  SendMessageBatchCommand, SendMessageCommand, paginateListQueues,
} from "@aws-sdk/client-sqs";

const [endpoint, accessKeyId, secretAccessKey, name] = process.argv.slice(2);
const sqs = new SQSClient({
  endpoint, region: "eu-central-1", credentials: { accessKeyId, secretAccessKey },
});
const { QueueUrl } = await sqs.send(new CreateQueueCommand({
  QueueName: name, Attributes: { VisibilityTimeout: "20" }, tags: { team: "shop" },
}));
const attributes = {
  "n-1.x": { DataType: "Number", StringValue: "1" },
  b: { DataType: "Binary", BinaryValue: Uint8Array.of(0, 1) },
};
const body = "<a&b>\r\n\"ü😀'";
const sent = await sqs.send(new SendMessageCommand({
  QueueUrl, MessageBody: body, MessageAttributes: attributes,
}));
const batch = await sqs.send(new SendMessageBatchCommand({
  QueueUrl, Entries: [1, 2, 3].map((n) => ({ Id: `m${n}`, MessageBody: `${n}` })),
}));
assert.equal(batch.Successful.length, 3);
const received = [];
while (received.length < 4) {
  const { Messages = [] } = await sqs.send(new ReceiveMessageCommand({
    QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 2,
    MessageSystemAttributeNames: ["All"], MessageAttributeNames: ["All"],
  }));
  received.push(...Messages);
}
const own = received.find((message) => message.MessageId === sent.MessageId);
assert.equal(own.Body, body);
assert.equal(own.Attributes.ApproximateReceiveCount, "1");
assert.deepEqual(own.MessageAttributes["n-1.x"], attributes["n-1.x"]);
assert.deepEqual([...own.MessageAttributes.b.BinaryValue], [0, 1]);
await sqs.send(new ChangeMessageVisibilityCommand({
  QueueUrl, ReceiptHandle: own.ReceiptHandle, VisibilityTimeout: 60,
}));
const deleted = await sqs.send(new DeleteMessageBatchCommand({
  QueueUrl, Entries: received.map((message, n) => ({ Id: `${n}`, ReceiptHandle: message.ReceiptHandle })),
}));
assert.equal(deleted.Successful.length, 4);
const shown = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }));
assert.equal(shown.Attributes.VisibilityTimeout, "20");
const urls = [];
for await (const page of paginateListQueues({ client: sqs, pageSize: 1 }, { QueueNamePrefix: name })) {
  urls.push(...(page.QueueUrls ?? []));
}
assert.deepEqual(urls, [QueueUrl]);
await sqs.send(new DeleteQueueCommand({ QueueUrl }));
await assert.rejects(sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "x" })), QueueDoesNotExist);
console.log("done");
