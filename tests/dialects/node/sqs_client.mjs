// AWS's SDK for JavaScript, version 3, on the running service: another endpoint and key, no more.
// It checks the MD5 of each message itself. Prints `done`, or throws.
import assert from "node:assert/strict";
import * as sdk from "@aws-sdk/client-sqs";
import { QueueDoesNotExist, SQSClient, UnsupportedOperation, paginateListQueues } from "@aws-sdk/client-sqs";

const [endpoint, accessKeyId, secretAccessKey, name] = process.argv.slice(2);
const sqs = new SQSClient({
  endpoint, region: "eu-central-1", credentials: { accessKeyId, secretAccessKey },
});
const { QueueUrl } = await sqs.send(new sdk.CreateQueueCommand({
  QueueName: name, Attributes: { VisibilityTimeout: "20" }, tags: { team: "shop" },
}));
const again = await sqs.send(new sdk.GetQueueUrlCommand({ QueueName: name }));
assert.equal(again.QueueUrl, QueueUrl);
await sqs.send(new sdk.SetQueueAttributesCommand({ QueueUrl, Attributes: { DelaySeconds: "0" } }));
await sqs.send(new sdk.TagQueueCommand({ QueueUrl, Tags: { tier: "1" } }));
await sqs.send(new sdk.UntagQueueCommand({ QueueUrl, TagKeys: ["team"] }));
const tags = await sqs.send(new sdk.ListQueueTagsCommand({ QueueUrl }));
assert.deepEqual(tags.Tags, { tier: "1" });
for (const command of [
  new sdk.AddPermissionCommand({ QueueUrl, Label: "l", AWSAccountIds: ["1"], Actions: ["*"] }),
  new sdk.RemovePermissionCommand({ QueueUrl, Label: "l" }),
]) {
  await assert.rejects(sqs.send(command), UnsupportedOperation);
}
// Errors that are of all services have no class in the SDK: it names them by the code of the query protocol.
for (const [name, type, members] of [
  ["InvalidParameterValue", "InvalidParameterValueException", { MessageBody: "x", DelaySeconds: 901 }],
  ["MissingParameter", "MissingRequiredParameterException", { MessageBody: "" }],
]) {
  const told = { name, __type: `com.amazon.coral.service#${type}` };
  await assert.rejects(sqs.send(new sdk.SendMessageCommand({ QueueUrl, ...members })), told);
}
const attributes = {
  "n-1.x": { DataType: "Number", StringValue: "1" },
  b: { DataType: "Binary", BinaryValue: Uint8Array.of(0, 1) },
};
const body = "<a&b>\r\n\"ü😀'";
const sent = await sqs.send(new sdk.SendMessageCommand({
  QueueUrl, MessageBody: body, MessageAttributes: attributes,
}));
const batch = await sqs.send(new sdk.SendMessageBatchCommand({
  QueueUrl, Entries: [1, 2, 3].map((n) => ({ Id: `m${n}`, MessageBody: `${n}` })),
}));
assert.equal(batch.Successful.length, 3);
const received = [];
while (received.length < 4) {
  const { Messages = [] } = await sqs.send(new sdk.ReceiveMessageCommand({
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
await sqs.send(new sdk.ChangeMessageVisibilityCommand({
  QueueUrl, ReceiptHandle: own.ReceiptHandle, VisibilityTimeout: 60,
}));
const changed = await sqs.send(new sdk.ChangeMessageVisibilityBatchCommand({
  QueueUrl, Entries: [{ Id: "a", ReceiptHandle: own.ReceiptHandle, VisibilityTimeout: 90 }],
}));
assert.equal(changed.Successful.length, 1);
await sqs.send(new sdk.DeleteMessageCommand({ QueueUrl, ReceiptHandle: own.ReceiptHandle }));
const deleted = await sqs.send(new sdk.DeleteMessageBatchCommand({
  QueueUrl, Entries: received.map((message, n) => ({ Id: `${n}`, ReceiptHandle: message.ReceiptHandle })),
}));
assert.equal(deleted.Successful.length, 4);
const shown = await sqs.send(new sdk.GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }));
assert.equal(shown.Attributes.VisibilityTimeout, "20");
const urls = [];
for await (const page of paginateListQueues({ client: sqs, pageSize: 1 }, { QueueNamePrefix: name })) {
  urls.push(...(page.QueueUrls ?? []));
}
assert.deepEqual(urls, [QueueUrl]);  // ListQueues, page by page

const SourceArn = shown.Attributes.QueueArn;
const user = await sqs.send(new sdk.CreateQueueCommand({
  QueueName: `${name}-user`,
  Attributes: { RedrivePolicy: JSON.stringify({ deadLetterTargetArn: SourceArn, maxReceiveCount: 1 }) },
}));
const users = await sqs.send(new sdk.ListDeadLetterSourceQueuesCommand({ QueueUrl }));
assert.deepEqual(users.queueUrls, [user.QueueUrl]);
const { TaskHandle } = await sqs.send(new sdk.StartMessageMoveTaskCommand({ SourceArn }));
let expected = "CANCELLED";
try {
  await sqs.send(new sdk.CancelMessageMoveTaskCommand({ TaskHandle }));
} catch (error) {
  assert.ok(error instanceof UnsupportedOperation, error);  // it ended before
  expected = "COMPLETED";
}
const tasks = await sqs.send(new sdk.ListMessageMoveTasksCommand({ SourceArn }));
assert.equal(tasks.Results[0].Status, expected);
await sqs.send(new sdk.PurgeQueueCommand({ QueueUrl }));
for (const each of [user.QueueUrl, QueueUrl]) {
  await sqs.send(new sdk.DeleteQueueCommand({ QueueUrl: each }));
}
await assert.rejects(sqs.send(new sdk.SendMessageCommand({ QueueUrl, MessageBody: "x" })), QueueDoesNotExist);
console.log("done");
