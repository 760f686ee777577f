// Where messages are received from: a queue, one of its receivers, or a pull subscription.

/** {path, body}: the path of the messages, and what each receive of the source says. */
export function sourceOf(source) {
  if (typeof source === "string") return { path: queuePath(source), body: {} };
  if ("queue" in source) {
    return { path: queuePath(source.queue), body: source.receiver ? { receiver: source.receiver } : {} };
  }
  const { topic, subscription } = source;
  return { path: `/topics/${part(topic)}/subscriptions/${part(subscription)}/messages`, body: {} };
}

const part = encodeURIComponent;
const queuePath = (queue) => `/queues/${part(queue)}/messages`;
