// A consumer: receives, extends leases while handlers run, and settles what they answer.

import { Client } from "./client.js";
import { CirrusMQError } from "./errors.js";
import { sleep } from "./transport.js";

const BATCH = 16;
const LEAST_LEASE_SECONDS = 2;
const LONGEST_LEASE_SECONDS = 43_200;
const LONGEST_DELAY_SECONDS = 43_200;
const REASON_CHARACTERS = 256;
const LONGEST_PAUSE_SECONDS = 300;
const AFTER_ERROR_MS = 1_000;

/** Deliver the message again, after so many seconds where they are given. */
export class Retry {
  constructor(afterSeconds = undefined) {
    this.afterSeconds = afterSeconds;
  }
}

/** Move the message to the dead-letter queue. */
export class DeadLetter {
  constructor(reason = "consumer") {
    this.reason = reason;
  }
}

/** The pause of a message without a retry policy: 1, 2, 4 … 300 s, of which up to half is left out. */
export function pauseSeconds(receiveCount, draw = Math.random()) {
  const full = Math.min(LONGEST_PAUSE_SECONDS, 2 ** Math.min(receiveCount - 1, 10));
  return Math.ceil(full / 2 + (draw * full) / 2);
}

export class Consumer {
  #source;
  #handler;
  #client;
  #options;
  #stopping = new AbortController();
  #held = new Map();
  #running = new Set();
  #attributes = null;

  constructor(source, handler, { client = new Client(), ...options } = {}) {
    this.#source = source;
    this.#handler = handler;
    this.#client = client;
    this.#options = { workers: 1, waitSeconds: 5, graceSeconds: 30, onError: report, ...options };
  }

  /** Receive nothing more; `run` resolves when the handlers that run have ended. */
  stop() {
    this.#stopping.abort();
  }

  /** Consume until `stop`, or until SIGTERM or SIGINT where there are signals. */
  async run() {
    const stop = () => this.stop();
    const signals = ["SIGTERM", "SIGINT"];
    for (const name of signals) globalThis.process?.once?.(name, stop);
    const ended = new AbortController();
    try {
      while (!this.#stopping.signal.aborted) await this.#round();
      const grace = sleep(this.#options.graceSeconds * 1_000, ended.signal);
      await Promise.race([Promise.all(this.#running), grace]);
    } finally {
      ended.abort();
      for (const name of signals) globalThis.process?.off?.(name, stop);
      for (const end of this.#held.values()) end();
    }
  }

  async #round() {
    const free = this.#options.workers - this.#running.size;
    if (free <= 0) {
      await Promise.race(this.#running);
      return;
    }
    for (const messages of this.#inOrder(await this.#receive(Math.min(free, BATCH)))) {
      const work = this.#handleAll(messages).finally(() => this.#running.delete(work));
      this.#running.add(work);
    }
  }

  /** The messages, those that must be handled one after the other together. */
  #inOrder(messages) {
    const lists = new Map();
    for (const message of messages) {
      const key = this.#attributes.ordered ? (message.group ?? "") : message.receipt;
      lists.set(key, [...(lists.get(key) ?? []), message]);
    }
    return lists.values();
  }

  async #receive(max) {
    const { waitSeconds, visibilityTimeoutSeconds } = this.#options;
    const { signal } = this.#stopping;
    try {
      this.#attributes ??= await this.#readAttributes();
      const options = { max, waitSeconds, visibilityTimeoutSeconds };
      // A receive that is cut off may hold messages: its answer is waited for.
      const messages = await this.#client.receive(this.#source, options);
      if (!signal.aborted) return messages;
      await this.#giveBackUntried(messages);
    } catch (error) {
      this.#options.onError(error);
      await sleep(AFTER_ERROR_MS, signal);
    }
    return [];
  }

  async #readAttributes() {
    const source = typeof this.#source === "string" ? { queue: this.#source } : this.#source;
    if ("queue" in source) return this.#client.call("GET /queues/{queue}", { path: source });
    return this.#client.call("GET /topics/{topic}/subscriptions/{subscription}", { path: source });
  }

  async #giveBackUntried(messages) {
    if (!messages.length) return;
    const receipts = messages.map((message) => message.receipt);
    await this.#client.giveBack(this.#source, receipts, { tried: false });
  }

  /** Messages one after the other; behind one that comes again none is handled. Never rejects. */
  async #handleAll(messages) {
    for (const message of messages) this.#keepLease(message);
    const left = [...messages];
    try {
      while (left.length) {
        const message = left.shift();
        const result = await this.#result(message);
        await this.#settle(message, result).finally(this.#held.get(message.receipt));
        if (result instanceof Retry || this.#stopping.signal.aborted) break;
      }
      await this.#giveBackUntried(left);
    } catch (error) {
      this.#options.onError(error, messages[0]); // their leases end, and they come again
    } finally {
      for (const message of left) this.#held.get(message.receipt)?.();
    }
  }

  async #result(message) {
    try {
      const result = await this.#handler(message);
      const known = result === undefined || result === null;
      if (known || result instanceof Retry || result instanceof DeadLetter) return result ?? null;
      throw new TypeError(
        `a handler returns nothing, a Retry or a DeadLetter, and not a value of type ${typeof result}`,
      );
    } catch (error) {
      this.#options.onError(error, message);
      return new Retry();
    }
  }

  async #settle(message, result) {
    const receipts = [message.receipt];
    if (result === null) {
      await this.#client.delete(this.#source, ...receipts);
      return;
    }
    if (result instanceof DeadLetter) {
      const reason = result.reason.slice(0, REASON_CHARACTERS);
      const { failed } = await this.#client.deadLetter(this.#source, receipts, reason);
      if (!failed.some((each) => each.code === "NoDeadLetterQueue")) return;
      this.#options.onError(new CirrusMQError(failed[0]), message);
    }
    const delaySeconds = this.#delayOf(message, result.afterSeconds);
    await this.#client.giveBack(this.#source, receipts, { delaySeconds });
  }

  /** Seconds until it comes again; undefined: the source's retry policy says when. */
  #delayOf(message, asked) {
    if (asked !== undefined) return Math.min(LONGEST_DELAY_SECONDS, Math.max(0, Math.ceil(asked)));
    const { retry, retry_in_force: inForce } = this.#attributes;
    return retry || inForce ? undefined : pauseSeconds(message.receive_count);
  }

  /** Extend the message's lease at half of its time, until it is settled. */
  #keepLease(message) {
    const { receipt } = message;
    const remaining = (Date.parse(message.visible_at) - this.#client.now()) / 1_000;
    const asked = this.#options.visibilityTimeoutSeconds ?? remaining;
    const bounded = Math.min(LONGEST_LEASE_SECONDS, Math.max(LEAST_LEASE_SECONDS, asked));
    const seconds = Math.ceil(bounded);
    const timer = setInterval(() => this.#extend(message, seconds), (bounded * 1_000) / 2);
    this.#held.set(receipt, () => {
      clearInterval(timer);
      this.#held.delete(receipt);
    });
  }

  async #extend(message, seconds) {
    try {
      const { failed } = await this.#client.extend(this.#source, [message.receipt], seconds);
      if (failed.length) this.#held.get(message.receipt)?.();
    } catch (error) {
      this.#options.onError(error, message);
    }
  }
}

function report(error, message) {
  console.error(`cirrusmq: ${message ? `${message.id}: ` : ""}${error.stack ?? error}`);
}
