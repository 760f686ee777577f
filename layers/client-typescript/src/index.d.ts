// What a program meets: the types of index.js. Those of the contract are in contract.d.ts.

import type {
  Calls,
  ChangedReceipts,
  DeletedReceipts,
  GivenBackReceipts,
  GivenReply,
  NewSubscription,
  PublishedMessage,
  PublishMessage,
  QueueAttributes,
  QueueInput,
  ReceivedMessage,
  Replied,
  ReplyInput,
  SendMessage,
  SentMessage,
  SubscriptionAttributes,
  SubscriptionInput,
  TopicAttributes,
  TopicInput,
} from "./contract.js";

export type * from "./contract.js";

/** A body of bytes or text, and attributes of either. */
type WithContent<M> = Omit<M, "body" | "body_base64" | "attributes"> & {
  body: string | Uint8Array;
  attributes?: Record<string, string | Uint8Array>;
};
export type Outgoing = string | Uint8Array | WithContent<SendMessage>;
export type Publishing = string | Uint8Array | WithContent<PublishMessage>;

/** A queue by name, one of its receivers, or a pull subscription. */
export type Source =
  | string
  | { queue: string; receiver?: string }
  | { topic: string; subscription: string };

/** A message that is held until `visible_at`. */
export interface Received extends ReceivedMessage {
  /** The body's bytes. */
  readonly bytes: Uint8Array;
  /** The body as text; throws where it is not UTF-8. */
  readonly text: string;
}

/** The reply to a request. */
export interface Reply extends GivenReply {
  /** The body's bytes. */
  readonly bytes: Uint8Array;
  /** The body as text; throws where it is not UTF-8. */
  readonly text: string;
}

export interface ClientOptions {
  /** CIRRUSMQ_URL unless given. */
  url?: string;
  /** CIRRUSMQ_ACCESS_KEY_ID unless given. */
  accessKeyId?: string;
  /** CIRRUSMQ_SECRET unless given. */
  secret?: string;
  /** In the place of the global one, for a proxy or a test. */
  fetch?: typeof fetch;
}

export interface ReceiveOptions {
  /** 1 to 16; 1 unless given. */
  max?: number;
  /** Only messages of this group, in an ordered or a fair queue. */
  group?: string;
  /** How long to wait for the first message, 0 to 30; the queue's own unless given. */
  waitSeconds?: number;
  /** How long the messages are held, 1 to 43,200; the message's or the source's unless given. */
  visibilityTimeoutSeconds?: number;
  /** Ends the call. What it holds by then comes again when its lease ends. */
  signal?: AbortSignal;
}

export interface ReceiveWhereOptions {
  /** 1 to 16; 1 unless given. */
  max?: number;
  /** `after` of the answer before, to go on behind it. */
  after?: string;
  /** How long the messages are held, 1 to 43,200; the message's or the source's unless given. */
  visibilityTimeoutSeconds?: number;
  /** Ends the call. What it holds by then comes again when its lease ends. */
  signal?: AbortSignal;
}

export interface Selected {
  messages: Received[];
  /** Whether these calls looked at everything that could be received when they came by. */
  seenAll: boolean;
  /** For the next call; undefined when all was seen. */
  after: string | undefined;
}

/** The path's and query's values and the body of a call. */
export type CallOptions<K extends keyof Calls> = Omit<Calls[K], "answer"> & { signal?: AbortSignal };

/** Calls reject with a CirrusMQError. They are repeated where the answer is lost, and store once. */
export class Client {
  constructor(options?: ClientOptions);
  /** Any call of the contract: `call("GET /queues/{queue}", { path: { queue: "orders" } })`. */
  call<K extends keyof Calls>(
    key: K,
    ...options: {} extends CallOptions<K> ? [CallOptions<K>?] : [CallOptions<K>]
  ): Promise<Calls[K]["answer"]>;
  /** Creates the queue, or finds it with these attributes. */
  createQueue(queue: string, attributes?: QueueInput): Promise<QueueAttributes>;
  /** Creates the topic, or finds it with these attributes. */
  createTopic(topic: string, attributes?: TopicInput): Promise<TopicAttributes>;
  /** Creates the subscription, or finds it; the secret of a URL is in the first answer alone. */
  createSubscription(
    topic: string,
    subscription: string,
    attributes: SubscriptionInput,
  ): Promise<NewSubscription | SubscriptionAttributes>;
  /** Sends 1 to 16 messages, all or none. */
  send(queue: string, ...messages: Outgoing[]): Promise<SentMessage[]>;
  /** Publishes 1 to 16 messages, all or none. */
  publish(topic: string, ...messages: Publishing[]): Promise<PublishedMessage[]>;
  /** Receives 0 to 16 messages; none when the wait is over. */
  receive(source: Source, options?: ReceiveOptions): Promise<Received[]>;
  /**
   * Receives up to 16 messages whose attribute has this value, of a queue without groups. A call looks
   * at a bounded part of the queue, and waits for nothing: give `after` to the next call.
   */
  receiveWhere(
    source: Source,
    name: string,
    value: string | Uint8Array,
    options?: ReceiveWhereOptions,
  ): Promise<Selected>;
  /** Sends a message and waits for its reply; null if none came in so many seconds. */
  ask(
    queue: string,
    message: Outgoing,
    seconds: number,
    options?: { signal?: AbortSignal },
  ): Promise<Reply | null>;
  /** Replies to a message that asks for it, which is deleted then. */
  reply(
    queue: string,
    message: Received,
    reply: string | Uint8Array | WithContent<ReplyInput>,
  ): Promise<Replied>;
  /** Acknowledges: the messages are done. */
  delete(source: Source, ...receipts: string[]): Promise<DeletedReceipts>;
  /** Not done: they come again, at once or later. `tried: false` counts no receive. */
  giveBack(
    source: Source,
    receipts: string[],
    options?: { delaySeconds?: number; tried?: boolean },
  ): Promise<GivenBackReceipts>;
  /** Moves them to the dead-letter queue. */
  deadLetter(source: Source, receipts: string[], reason?: string): Promise<DeletedReceipts>;
  /** Holds them for so many seconds from now, 0 to 43,200. */
  extend(source: Source, receipts: string[], seconds: number): Promise<ChangedReceipts>;
  /** The service's time in milliseconds, as far as it is known. */
  now(): number;
}

/** Deliver the message again: after so many seconds, or by the source's retry policy. */
export class Retry {
  constructor(afterSeconds?: number);
  readonly afterSeconds: number | undefined;
}

/** Move the message to the dead-letter queue; without one it comes again. */
export class DeadLetter {
  constructor(reason?: string);
  readonly reason: string;
}

export type HandlerResult = void | null | undefined | Retry | DeadLetter;
export type Handler = (message: Received) => HandlerResult | Promise<HandlerResult>;

export interface ConsumerOptions {
  client?: Client;
  /** How many messages are handled at a time; 1 unless given. */
  workers?: number;
  /** How long a receive waits, 5 unless given; an idle consumer takes so long to stop. */
  waitSeconds?: number;
  /** Of leases, which are extended while a handler runs. */
  visibilityTimeoutSeconds?: number;
  /** For handlers that still run at `stop`; 30 unless given. */
  graceSeconds?: number;
  /** Gets what a handler threw and what a call refused; written to standard error unless given. */
  onError?: (error: unknown, message?: Received) => void;
}

/**
 * Gives a source's messages to a handler until it is stopped. A handler that returns has its message
 * deleted; one that throws gets it again, by the retry policy, or after 1, 2, 4 … 300 seconds. Leases
 * are extended meanwhile. In an ordered source one message of a group is handled at a time.
 */
export class Consumer {
  constructor(source: Source, handler: Handler, options?: ConsumerOptions);
  /** Resolves after `stop`, SIGTERM or SIGINT, when the handlers that run have ended. */
  run(): Promise<void>;
  stop(): void;
}

/** A refusal by its stable `code`, or `NoAnswer`, or `NotConfigured`. */
export class CirrusMQError extends Error {
  readonly code: string;
  readonly status: number | undefined;
  readonly parameter: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** Whether the call may have taken effect all the same. */
  readonly uncertain: boolean;
}

/** Whether the service made this post, no longer than five minutes ago. `body`: as it came. */
export function isGenuine(
  secret: string,
  headers: Headers | Record<string, string | string[] | undefined>,
  body: string | Uint8Array,
  nowMs?: number,
): Promise<boolean>;
