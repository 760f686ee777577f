// One call over HTTP, repeated where that is safe, with pauses between.

import { makeAttempt } from "./attempts.js";
import { CirrusMQError, errorOf } from "./errors.js";

const TRIES = 6;
const FIRST_MS = 100;
const LONGEST_MS = 5_000;
// An attempt is taken for 120 s: nothing is repeated beyond this.
const MOST_MS = 90_000;
const ANSWER_MS = 35_000;
// The header Date has whole seconds.
const CLOCK_MS = 2_000;
const REPEATED = new Set([429, 502, 503, 504]);

/** The URL and the key, from options or from the environment's variables. */
export function connectionOf(options) {
  const variables = globalThis.process?.env ?? {};
  const url = options.url ?? variables.CIRRUSMQ_URL;
  const accessKeyId = options.accessKeyId ?? variables.CIRRUSMQ_ACCESS_KEY_ID;
  const secret = options.secret ?? variables.CIRRUSMQ_SECRET;
  if (!url || !accessKeyId || !secret) {
    throw new CirrusMQError({
      code: "NotConfigured",
      detail:
        "No URL of the service, or no access key for it, is given: set CIRRUSMQ_URL, " +
        "CIRRUSMQ_ACCESS_KEY_ID and CIRRUSMQ_SECRET, or pass url, accessKeyId and secret.",
    });
  }
  return { url: url.trim().replace(/\/+$/, ""), key: `${accessKeyId.trim()}:${secret.trim()}` };
}

export class Transport {
  #url;
  #headers;
  #fetch;
  #aheadMs = 0;

  constructor(options) {
    const { url, key } = connectionOf(options);
    this.#url = url;
    this.#headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    this.#fetch = options.fetch ?? globalThis.fetch;
  }

  /** The service's time in milliseconds, as far as it is known. */
  now() {
    return Date.now() + this.#aheadMs;
  }

  /** Learn the service's time to the millisecond. */
  async learnTime() {
    const health = await this.call("GET", "/health");
    this.#aheadMs = Date.parse(health.time) - Date.now();
  }

  /**
   * Make a call. `again`: the body of a repetition, `body` itself unless given. `signal` ends it.
   * Resolves to the JSON of the answer, null where there is none; rejects with a CirrusMQError.
   */
  async call(method, path, body, { again = body, signal } = {}) {
    const began = Date.now();
    let uncertain = false;
    for (let tried = 1; ; tried += 1) {
      const error = await this.#once(method, path, tried === 1 ? body : again, signal);
      if (!(error instanceof CirrusMQError)) return error.value;
      const pause = pauseMs(tried, Date.now() - began, error.retryAfterSeconds);
      const repeats = error.status === undefined || REPEATED.has(error.status);
      if (repeats && error.status !== 429) uncertain = true;
      if (!repeats || pause === null || signal?.aborted) {
        error.uncertain = uncertain;
        throw error;
      }
      await sleep(pause, signal);
    }
  }

  /**
   * A call that shows an attempt: `bodyOf(attempt, isRepeated)`. An attempt that is refused for its
   * time stored nothing, so it is made once more by the service's own time.
   */
  async callWithAttempt(method, path, bodyOf, signal) {
    const make = () => {
      const attempt = makeAttempt(this.now());
      return this.call(method, path, bodyOf(attempt, false), {
        again: bodyOf(attempt, true),
        signal,
      });
    };
    try {
      return await make();
    } catch (error) {
      if (error.code !== "InvalidParameter" || error.parameter !== "attempt" || error.uncertain) {
        throw error;
      }
      await this.learnTime();
      return make();
    }
  }

  #seeTime(told) {
    if (Math.abs(told - this.now()) > CLOCK_MS) this.#aheadMs = told - Date.now();
  }

  /** {value} of an answer, or the error. */
  async #once(method, path, body, signal) {
    const ended = AbortSignal.timeout(ANSWER_MS);
    try {
      const answer = await this.#fetch(this.#url + path, {
        method,
        headers: this.#headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: signal ? AbortSignal.any([signal, ended]) : ended,
      });
      this.#seeTime(Date.parse(answer.headers.get("date") ?? ""));
      if (!answer.ok) return await errorOf(answer);
      const text = await answer.text();
      return { value: text ? JSON.parse(text) : null };
    } catch (error) {
      const detail = `The service at ${this.#url} did not answer: ${error.cause?.message ?? error.message}`;
      return new CirrusMQError({ code: "NoAnswer", detail }, undefined, { cause: error });
    }
  }
}

/** The pause before the next try, or null to give up. */
export function pauseMs(tried, elapsedMs, leastSeconds = 0, draw = Math.random()) {
  if (tried >= TRIES) return null;
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** (tried - 1));
  const pause = Math.max(full / 2 + (draw * full) / 2, leastSeconds * 1_000);
  return elapsedMs + pause > MOST_MS ? null : pause;
}

/** Wait; a signal ends it early. */
export function sleep(milliseconds, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", done);
  });
}
