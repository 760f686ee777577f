// The calls: each by its method and path, and those of messages by name.

import { fromJson, toJson, valueToJson } from "./messages.js";
import { sourceOf } from "./sources.js";
import { Transport } from "./transport.js";

export class Client {
  #transport;

  constructor(options = {}) {
    this.#transport = new Transport(options);
  }

  /** The service's time in milliseconds, as far as it is known. */
  now() {
    return this.#transport.now();
  }

  async call(key, { path = {}, query = {}, body, signal } = {}) {
    const [method, pattern] = key.split(" ");
    const filled = pattern.replace(/{(\w+)}/g, (_, name) => {
      if (!path[name]) throw new TypeError(`path.${name}: ${key} needs it`);
      return encodeURIComponent(path[name]);
    });
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const asked = given.length ? `?${new URLSearchParams(given.map(([k, v]) => [k, String(v)]))}` : "";
    const sent = body ?? (method === "GET" || method === "DELETE" ? undefined : {});
    return this.#transport.call(method, filled + asked, sent, { signal });
  }

  async createQueue(queue, attributes = {}) {
    return this.call("PUT /queues/{queue}", { path: { queue }, body: attributes });
  }

  async createTopic(topic, attributes = {}) {
    return this.call("PUT /topics/{topic}", { path: { topic }, body: attributes });
  }

  async createSubscription(topic, subscription, attributes) {
    const path = { topic, subscription };
    return this.call("PUT /topics/{topic}/subscriptions/{subscription}", { path, body: attributes });
  }

  async send(queue, ...messages) {
    return this.#handOver(`/queues/${encodeURIComponent(queue)}/messages`, messages);
  }

  async publish(topic, ...messages) {
    return this.#handOver(`/topics/${encodeURIComponent(topic)}/messages`, messages);
  }

  async receive(source, { max = 1, group, waitSeconds, visibilityTimeoutSeconds, signal } = {}) {
    const { path, body } = sourceOf(source);
    const wanted = { ...body, max };
    if (group !== undefined) wanted.group = group;
    if (waitSeconds !== undefined) wanted.wait_seconds = waitSeconds;
    if (visibilityTimeoutSeconds !== undefined) {
      wanted.visibility_timeout_seconds = visibilityTimeoutSeconds;
    }
    const bodyOf = (attempt, repeat) => ({ ...wanted, attempt, ...(repeat && { repeat }) });
    const answer = await this.#transport.callWithAttempt("POST", `${path}/receive`, bodyOf, signal);
    return answer.messages.map(fromJson);
  }

  /** Not by an attempt: messages of a lost answer come again when their leases end. */
  async receiveWhere(
    source,
    name,
    value,
    { max = 1, after, visibilityTimeoutSeconds, signal } = {},
  ) {
    const { path, body } = sourceOf(source);
    const wanted = { ...body, max, where: { name, value: valueToJson(value) } };
    if (after !== undefined) wanted.after = after;
    if (visibilityTimeoutSeconds !== undefined) {
      wanted.visibility_timeout_seconds = visibilityTimeoutSeconds;
    }
    const answer = await this.#transport.call("POST", `${path}/receive`, wanted, { signal });
    const { messages, seen_all: seenAll, after: next } = answer;
    return { messages: messages.map(fromJson), seenAll, after: next };
  }

  async ask(queue, message, seconds, { signal } = {}) {
    const bare = typeof message === "string" || message instanceof Uint8Array;
    const given = bare ? { body: message } : message;
    const [sent] = await this.send(queue, { ...given, reply: { seconds } });
    const path = { queue, id: sent.id };
    const query = { reply_by: sent.reply_by, wait_seconds: 20 };
    for (;;) {
      const began = Date.now();
      const key = "GET /queues/{queue}/messages/{id}/reply";
      const answer = await this.call(key, { path, query, signal });
      if (answer.state === "replied") return fromJson(answer.reply);
      if (answer.state === "timed_out") return null;
      // Answered at once: the account has as many waits as it may have.
      if (Date.now() - began < 1_000) await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }

  async reply(queue, message, reply) {
    const path = { queue, id: message.id };
    const body = { receipt: message.receipt, reply: toJson(reply) };
    return this.call("POST /queues/{queue}/messages/{id}/reply", { path, body });
  }

  async delete(source, ...receipts) {
    return this.#settle(source, "delete", { receipts });
  }

  async giveBack(source, receipts, { delaySeconds, tried } = {}) {
    const body = { receipts };
    if (delaySeconds !== undefined) body.delay_seconds = delaySeconds;
    if (tried !== undefined) body.tried = tried;
    return this.#settle(source, "give-back", body);
  }

  async deadLetter(source, receipts, reason) {
    return this.#settle(source, "dead-letter", { receipts, ...(reason && { reason }) });
  }

  async extend(source, receipts, seconds) {
    const entries = receipts.map((receipt) => ({ receipt, visibility_timeout_seconds: seconds }));
    return this.#settle(source, "visibility", { entries });
  }

  async #settle(source, work, body) {
    return this.#transport.call("POST", `${sourceOf(source).path}/${work}`, body);
  }

  /** Send or publish. Ordered queues take no attempt: what has a group gets an id of its own. */
  async #handOver(path, given) {
    const messages = given.map(toJson);
    if (messages.some(({ group, replace }) => group !== undefined && replace === undefined)) {
      const named = messages.map((message) => ({ deduplication_id: crypto.randomUUID(), ...message }));
      if (path.startsWith("/queues/")) {
        return (await this.#transport.call("POST", path, { messages: named })).messages;
      }
    }
    const bodyOf = (attempt) => ({ messages, attempt });
    return (await this.#transport.callWithAttempt("POST", path, bodyOf)).messages;
  }
}
