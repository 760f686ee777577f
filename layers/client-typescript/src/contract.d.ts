// The contract's types, which `make openapi` reads from the OpenAPI document.
//
// Times are RFC 3339 texts. A member with ? may be absent.

/** A header of an answer. */
export interface AnsweredHeader {
  name: string;
  value: string;
}

/** The wish of a message for a reply. */
export interface AskedReply {
  /** an integer from 1 to 43,200 */
  seconds: number;
}

/** The state of a request, for its sender. */
export interface AwaitedReply {
  /** `timed_out`: no reply came before the deadline, and none is taken now */
  state: "replied" | "timed_out" | "waiting";
  reply?: GivenReply;
}

/** The backlog of the account's queues and subscriptions at one time. */
export interface BacklogReport {
  /** RFC 3339 in UTC with milliseconds */
  at: string;
  /** RFC 3339 in UTC with milliseconds */
  generated_at: string;
  resources: Record<string, unknown>[];
  /** the same figures of all resources together that have a label */
  labels: Record<string, unknown>[];
  /** of each figure: the resources and labels that have most, ten at most */
  top: Record<string, unknown>;
}

/** Bytes in JSON. */
export interface Base64 {
  base64: string;
}

/** A time whose use is in no invoice, for no export shows it. */
export interface BillingGap {
  /** RFC 3339 in UTC with milliseconds */
  from: string;
  /** RFC 3339 in UTC with milliseconds */
  to: string;
}

/** The newest finished billing of the account. */
export interface BillingReport {
  /** RFC 3339 in UTC with milliseconds */
  from: string;
  /** RFC 3339 in UTC with milliseconds */
  to: string;
  /** RFC 3339 in UTC with milliseconds */
  generated_at: string;
  /** of days and months */
  time_zone: "UTC";
  gaps: BillingGap[];
  invoices: Invoice[];
  unusual: UnusualHour[];
  /** absent where the account has none */
  budget?: BudgetOfMonth;
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** When it opens: in a minute 20 outcomes or more, and a share of them failed. */
export interface Breaker {
  share: number;
}

/** A `breaker` as a caller gives it; members that are not given are UNSET. */
export interface BreakerInput {
  /** a number from 0.1 to 1 */
  share?: number;
}

/** Charges of use in the running month, before tax: until now, and the forecast. */
export interface BudgetOfMonth {
  month: string;
  currency: string;
  /** a decimal number: the budget */
  amount: string;
  /** a decimal number: so far */
  spent: string;
  /** a decimal number: at the month's end, if each day is like the last */
  forecast: string;
  /** within it; exceeded by the forecast; exceeded now */
  state: "forecast" | "open" | "spent";
}

/** Bytes that are not given as text. */
export interface Bytes {
  base64: string;
}

/** A page of changes, the newest first; it may be short, and even empty, before the end. */
export interface ChangePage {
  changes: ChangeState[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** A change, and the key that made it. */
export interface ChangeState {
  /** RFC 3339 in UTC with milliseconds */
  at: string;
  /** of the key; null: no key's, as CloudFormation's */
  account: string | null;
  key_id: string | null;
  /** the call */
  route: string;
  /** the names in its path */
  resource: string;
  /** Ok; or Unavailable: it may have been made */
  code: string;
  /** as in the log */
  request_id: string;
}

/** The leases that were changed, and the receipts that could not be used. */
export interface ChangedReceipts {
  changed: HeldReceipt[];
  failed: Failure[];
}

/** The body of `…/confirm`: the token; without one the owner asks for a new one. */
export interface ConfirmRequest {
  /** the one that came to the endpoint; null unless given */
  token?: string | null;
}

/** Asks the endpoint of a subscription to confirm. */
export interface ConfirmationRequest {
  Type: "SubscriptionConfirmation";
  /** the account of the topic */
  TopicOwner: string;
  topicName: string;
  subscriptionName: string;
  /** the body's `token` of `POST .../confirm` */
  token: string;
  confirmUrl: string;
  expiresAt: string;
}

/** A page of the access keys that received, in no order. */
export interface ConsumerPage {
  consumers: ConsumerState[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** An access key that received within the last seven days, whether or not a message came. */
export interface ConsumerState {
  /** shown to the key's own account alone */
  access_key_id?: string;
  account: string;
  /** noted once in five minutes: the key may have received since */
  last_received_at: string;
}

/** A message as it was sent: `body` as `body`, `body_base64` as `body_base64`. */
export interface Content {
  id: string;
  body?: string;
  body_base64?: string;
  attributes: Record<string, string | Bytes>;
  tags: string[];
  group?: string;
  /** absent: 1, the lowest */
  priority?: number;
  /** RFC 3339 in UTC with milliseconds */
  sent_at: string;
  /** the account that sent it */
  sender: string;
  /**
   * the id of its access key, where the queue or topic has `sender: key`: shown to that account
   * alone
   */
  sender_key?: string;
}

/** Messages by state. */
export interface Counts {
  active: number;
  inactive: number;
  delayed: number;
  rewindable: number;
  oldest_active_age_seconds: number;
  /**
   * with priorities: the active ones by priority; with approximate, those not read are parted by a
   * count of each priority that may be a minute old
   */
  active_by_priority?: Record<string, number>;
  /** left out: exact; true: not all were read, the rest is counted late */
  approximate?: boolean;
}

/** When a message is given up, and the queue of the same account that takes it. */
export interface DeadLetter {
  queue: string;
  max_receives?: number | null;
  max_age_seconds?: number | null;
}

/**
 * Conditions on a dead letter's note; a message without a note is not a dead letter. Ages are of
 * the move into the dead-letter queue, at the time of the call.
 */
export interface DeadLetterFilter {
  /** a text of 1 to 256 characters */
  reason?: string;
  /** a name of 1 to 64 characters */
  source_queue?: string;
  /** a name of 1 to 64 characters */
  receiver?: string;
  /** a name of 1 to 64 characters */
  subscription?: string;
  /** an integer from 0 to 1,296,000 seconds */
  older_than_seconds?: number;
  /** an integer from 0 to 1,296,000 seconds */
  younger_than_seconds?: number;
}

/** A `dead_letter` as a caller gives it; members that are not given are UNSET. */
export interface DeadLetterInput {
  /** a queue's name */
  queue: string;
  /** an integer from 1 to 1,000 */
  max_receives?: number;
  /** an integer from 300 to 43,200 seconds */
  max_age_seconds?: number;
}

/** The source of a dead letter, and the reason. */
export interface DeadLetterNote {
  source_queue: string;
  receive_count: number;
  /** RFC 3339 in UTC with milliseconds */
  dead_at: string;
  /** `max_receives`, `max_age`, `retries`, `expired`, or a consumer's text */
  reason: string;
  receiver?: string;
  subscription?: string;
}

/** The body of a consumer's dead-letter call. */
export interface DeadLetterRequest {
  /** an array of 1 to 16 receipts */
  receipts: string[];
  /** a text of at most 256 characters; "consumer" unless given */
  reason?: string;
}

/** The body of a delete. */
export interface DeleteRequest {
  /** an array of 1 to 16 receipts */
  receipts: string[];
}

/** The messages that were deleted, and the receipts that could not be used. */
export interface DeletedReceipts {
  deleted: string[];
  failed: Failure[];
}

/** A post of a message to a URL; one without an `error` was taken. */
export interface DeliveryAttempt {
  /** from 1 on */
  number: number;
  /** when it began */
  at: string;
  /** of the answer; absent without one */
  status?: number;
  /** `status <n>`, `redirect <n>`, or a word such as `timeout`, `tls` */
  error?: string;
}

/** The outcome of a message at one subscription. */
export interface DeliveryState {
  subscription: string;
  state: "dead" | "delivered" | "discarded" | "pending" | "retrying";
  attempts: number;
  /** RFC 3339 in UTC with milliseconds */
  next_attempt_at?: string;
  last_error?: string;
  /** where one went that is dead */
  dead_letter_queue?: string;
  /** of a URL: the latest attempts, 10 at most, oldest first */
  history?: DeliveryAttempt[];
}

/** Other ways for some calls: URLs, each with the same paths, and tables; empty without any. */
export interface Endpoints {
  /** takes POST /queues/{queue}/messages */
  send?: string;
  /** takes POST …/messages/receive and …/peek */
  receive?: string;
  /** takes POST …/messages/delete, …/visibility, …/give-back, …/dead-letter */
  delete?: string;
  /** takes POST /topics/{topic}/messages */
  publish?: string;
  in_process?: InProcess;
}

/** The newest answer of a URL that did not take a message, of one status. */
export interface FailedAnswer {
  /** as in a message's `history`: `status 503` */
  error: string;
  /** when its post began */
  at: string;
  duration_ms: number;
  message_id: string;
  /** 1 KB of them together; none that may hold a secret */
  headers: AnsweredHeader[];
  /** its first kilobyte */
  body: string;
  /** absent: text */
  body_encoding?: "base64";
  /** whether it was longer */
  body_cut: boolean;
}

/** A receipt that could not be used. */
export interface Failure {
  receipt: string;
  code: string;
  detail: string;
}

/**
 * Which messages are let pass. One of `tags`, `tag_expression`, `binding_keys`, `policy` and
 * `body_policy`, or `sql`, or both, which must hold then. Topics of kind `tags` take `tags`,
 * `tag_expression`, `policy`, `body_policy` and `sql`; of kind `routing_key` `binding_keys`,
 * `policy`, `body_policy` and `sql`; receivers of a queue `tags` and `sql`.
 */
export interface Filter {
  /** messages with one of these; none of them lets all pass */
  tags?: string[];
  /** `*`, or at most 10 tags between `||` */
  tag_expression?: string;
  binding_keys?: string[];
  /**
   * As an SNS filter policy: for each attribute a list of conditions, of which one must hold. A
   * condition is a text, a number, or an object with `prefix`, `suffix`, `equals-ignore-case`,
   * `anything-but`, `numeric`, `cidr` or `exists`; `$or` has policies of which one must hold. At
   * most 8,192 bytes, 5 names and 150 combinations.
   */
  policy?: Record<string, unknown[]>;
  /**
   * As an SNS filter policy with the scope `MessageBody`, over a body that is a JSON object: a name
   * has conditions as in `policy`, also true, false and null, or an object with names of its own.
   * At most 8,192 bytes, 5 names and 150 combinations, in which conditions count by the depth of
   * their name.
   */
  body_policy?: Record<string, unknown[] | Record<string, unknown>>;
  /**
   * Over attributes by name, at most 16,384 bytes and 1,000 tokens. It lets pass what it is TRUE
   * for; an attribute that is absent is NULL. `TAGS = 'a'` is true where `a` is one of the
   * message's tags. ``` or := and (OR and)* and := eq (AND eq)* eq := cmp ( ("=" | "<>") cmp | IS
   * [NOT] NULL )* cmp := unary ( (">" | ">=" | "<" | "<=") unary | [NOT] BETWEEN unary AND unary |
   * [NOT] IN ('s', ...) )* unary := ("+" | "-" | NOT) unary | literal | name | "(" or ")" ```
   */
  sql?: string;
}

/** A message that is in a queue or in one of its receivers. */
export interface FoundMessage {
  id: string;
  state: "active" | "delayed" | "inactive";
  /** RFC 3339 in UTC with milliseconds */
  sent_at: string;
  receive_count: number;
  /** RFC 3339 in UTC with milliseconds */
  first_received_at?: string;
  /** when it can be received, or since when */
  visible_at: string;
  /** RFC 3339 in UTC with milliseconds */
  expires_at: string;
  /** of body, attributes and tags */
  bytes: number;
  dead_letter?: DeadLetterNote;
  /** with `body=true`: as it was sent */
  message?: Content;
  /** messages of the same id that are there too: dead letters of several receivers, or redriven */
  others?: MessageState[];
}

/** The body of a give-back. */
export interface GiveBackRequest {
  /** an array of 1 to 16 receipts */
  receipts: string[];
  /** an integer from 0 to 43,200 seconds */
  delay_seconds?: number;
  /**
   * a boolean; false: nothing began to handle these messages, and their receive counts are as
   * before the receive; true unless given
   */
  tried?: boolean;
}

/** The messages that were given back, and the receipts that could not be used. */
export interface GivenBackReceipts {
  given_back: HeldReceipt[];
  failed: Failure[];
}

/** A reply as it was given: `body` as `body`, `body_base64` as `body_base64`. */
export interface GivenReply {
  body?: string;
  body_base64?: string;
  attributes: Record<string, string | Bytes>;
  /** RFC 3339 in UTC with milliseconds */
  replied_at: string;
}

/** A page of the grants on a queue, by account. */
export interface GrantPage {
  grants: GrantState[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** The body of `PUT /queues/{queue}/grants/{account}`. */
export interface GrantRequest {
  permission: "admin" | "full" | "info" | "receive" | "send" | "send_receive";
}

/** A grant: the permission of another account on a queue. */
export interface GrantState {
  account: string;
  permission: "admin" | "full" | "info" | "receive" | "send" | "send_receive";
}

/** The body of a group's rewind. */
export interface GroupRewindRequest {
  /** a time within the last 24 hours */
  to: string;
}

/** A message as it was given, which has no id before its commit. */
export interface HalfMessage {
  body?: string;
  body_base64?: string;
  attributes: Record<string, string | Bytes>;
  tags: string[];
  group?: string;
  routing_key?: string;
}

/** The body of a receive of half messages. */
export interface HalfReceiveRequest {
  /** an integer from 1 to 16; 1 unless given */
  max?: number;
  /** an integer from 1 to 43,200 seconds; 30 unless given */
  visibility_timeout_seconds?: number;
  /** the producers that are asked; "default" unless given */
  group?: string;
}

/** The body of a commit or a rollback. */
export interface HandleRequest {
  /** of the publish that prepared messages */
  handle: string;
}

/** That the service answers. */
export interface Health {
  /** `degraded`, on one machine: calls are served, and stored data was lost */
  status: "degraded" | "ok";
  version: string;
  /** RFC 3339 in UTC with milliseconds */
  time: string;
  time_scale: number;
  /** why it is degraded, and what to do */
  detail?: string;
}

/** A message and the time at which it is visible again. */
export interface HeldReceipt {
  receipt: string;
  /** RFC 3339 in UTC with milliseconds */
  visible_at: string;
}

/** The tables, for a client that calls them from its own process with its own AWS rights. */
export interface InProcess {
  region: string;
  /** the table of accounts and queues */
  directory: string;
  /** the table of messages */
  messages: string;
  /** the account of the access key */
  account: string;
  /** the highest format that is written */
  format: number;
}

/** A month of an account, in one currency: a document, or charges that are not issued yet. */
export interface Invoice {
  month: string;
  currency: string;
  /** nothing of it changes any more */
  closed: boolean;
  /** RFC 3339 in UTC with milliseconds */
  closes_at: string;
  /** of the running month: its total if each day is like the last one */
  forecast: string | null;
  /** those on this page; the pages before and after it have more */
  lines: InvoiceLine[];
  /** a decimal number: the sum of all lines, in whole minor units */
  total: string;
  /** of the document; null: not issued yet */
  number: string | null;
  type: "credit_note" | "debit_note" | "invoice";
  /** the number of a note's invoice */
  refers_to: string | null;
}

/** The use of one resource, of one kind. */
export interface InvoiceLine {
  resource: string;
  kind: string;
  /** the closed month that the use is of; null: the invoice's own */
  correction: string | null;
  count: number;
  bytes: number;
  /** a decimal number, exact */
  amount: string;
}

/** A function that is called with batches of messages, and within which bounds. */
export interface Invoke {
  function: string;
  max_concurrency: number;
  batch: number;
  timeout_seconds: number;
  event_source: "aws:sqs" | "cirrusmq";
  /** null: calls never stop */
  breaker: Breaker | null;
}

/** An `invoke` as a caller gives it; members that are not given are UNSET. */
export interface InvokeInput {
  /** a text of 1 to 256 characters */
  function: string;
  /** an integer from 1 to 1,000; 10 unless given */
  max_concurrency?: number;
  /** an integer from 1 to 16; 10 unless given */
  batch?: number;
  /** an integer from 1 to 840 seconds; 60 unless given */
  timeout_seconds?: number;
  event_source?: "aws:sqs" | "cirrusmq";
  breaker?: BreakerInput | null;
}

/** A page of an account's keys. */
export interface KeyPage {
  keys: KeyState[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** The body of `POST /keys`; without a scope a key may make every call in its account. */
export interface KeyRequest {
  /** an account's name */
  account?: string;
  admin?: boolean;
  scope?: Scope | null;
  manages_keys?: boolean;
  signing?: boolean;
  /** a time; null unless given */
  expires_at?: string | null;
  description?: string | null;
}

/** An access key, without its secret. */
export interface KeyState {
  access_key_id: string;
  account: string;
  admin: boolean;
  /** null: every call in its account */
  scope: Scope | null;
  /** makes, rotates and deletes keys */
  manages_keys: boolean;
  /** its secret may sign calls of other services' SDKs, too */
  signing: boolean;
  description: string | null;
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  expires_at: string | null;
  /** the beginning of the day, in UTC */
  last_used_at: string | null;
  /** end of the time in which the old secret is valid */
  earlier_secret_until: string | null;
}

/** Queues and topics by name; another account's queue is `account:queue`. */
export interface Listed {
  /** a list of at most 50 names */
  queues?: string[];
  /** a list of at most 50 names */
  topics?: string[];
}

/** Messages in order; the cursor is always there, for later messages. */
export interface LogPage {
  messages: LoggedMessage[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor: string;
}

/** A message of a topic's log. */
export interface LoggedMessage {
  id: string;
  body?: string;
  body_base64?: string;
  attributes: Record<string, string | Bytes>;
  tags: string[];
  group?: string;
  /** absent: 1, the lowest */
  priority?: number;
  /** RFC 3339 in UTC with milliseconds */
  sent_at: string;
  /** the account that sent it */
  sender: string;
  /**
   * the id of its access key, where the queue or topic has `sender: key`: shown to that account
   * alone
   */
  sender_key?: string;
  routing_key?: string;
}

/** The body of a match: a publish's body, and a filter to test. */
export interface MatchRequest {
  /** an array of 1 to 16 messages */
  messages: PublishMessage[];
  atomic?: boolean;
  /**
   * a ULID of the caller's own, at most 120 s old: the call that is repeated with it is known again
   */
  attempt?: string;
  transaction?: TransactionInput;
  filter?: Filter | null;
}

/**
 * The subscriptions that would get a message; with `atomic: false` it may be an `error`. With
 * `filter` whether it passes that one, instead of the subscriptions.
 */
export interface MatchedMessage {
  subscriptions?: MatchedSubscription[];
  /** whether the filter lets it pass */
  passes?: boolean;
  /** the reason, if it does not */
  why_not?: string;
  error?: Problem;
}

/** One entry for each message, in the order given; none is published. */
export interface MatchedMessages {
  messages: MatchedMessage[];
}

/** A subscription that gets a message. */
export interface MatchedSubscription {
  name: string;
  protocol: "http" | "pull" | "queue";
  /** whether the message would wait there */
  paused: boolean;
}

/** The state of a message in a queue or in one of its receivers. */
export interface MessageState {
  id: string;
  state: "active" | "delayed" | "inactive";
  /** RFC 3339 in UTC with milliseconds */
  sent_at: string;
  receive_count: number;
  /** RFC 3339 in UTC with milliseconds */
  first_received_at?: string;
  /** when it can be received, or since when */
  visible_at: string;
  /** RFC 3339 in UTC with milliseconds */
  expires_at: string;
  /** of body, attributes and tags */
  bytes: number;
  dead_letter?: DeadLetterNote;
}

/** The outcomes of a message, subscription by subscription. */
export interface MessageTrace {
  id: string;
  /** RFC 3339 in UTC with milliseconds */
  sent_at: string;
  deliveries: DeliveryState[];
  /** of its traceparent */
  trace_id?: string;
  /** with `body=true`: as it was published */
  message?: LoggedMessage;
}

/** An access key with a new secret, which is shown here alone. */
export interface NewKey {
  access_key_id: string;
  account: string;
  admin: boolean;
  /** null: every call in its account */
  scope: Scope | null;
  /** makes, rotates and deletes keys */
  manages_keys: boolean;
  /** its secret may sign calls of other services' SDKs, too */
  signing: boolean;
  description: string | null;
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  expires_at: string | null;
  /** the beginning of the day, in UTC */
  last_used_at: string | null;
  /** end of the time in which the old secret is valid */
  earlier_secret_until: string | null;
  secret: string;
}

/** A new subscription, with the secret that signs what a URL gets. */
export interface NewSubscription {
  name: string;
  topic: string;
  id: string;
  protocol: "http" | "pull" | "queue";
  endpoint?: string;
  filter: Filter | null;
  retry: RetryPolicy | null;
  retry_in_force?: RetryInForce;
  content_format: "json" | "simplified";
  dead_letter_queue: string | null;
  /** why its own dead-letter queue could not be made */
  dead_letter_error?: string;
  labels: Record<string, string>;
  max_in_flight?: number;
  /** messages a second at most; null: as many as there are */
  rate?: number | null;
  /** whether what the URL answers to posts that fail is kept for a day */
  keep_answers?: boolean;
  /** null: posts never stop */
  breaker?: Breaker | null;
  mode?: "broadcasting" | "clustering";
  ordered?: boolean;
  start?: string;
  invoke?: Invoke | null;
  /** whether its messages wait until it is resumed */
  paused?: boolean;
  /** true: paused because its URL answered 410 */
  gone?: boolean;
  made_by?: string;
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC with milliseconds */
  modified_at: string;
  secret?: string;
}

/** The body of a call that takes none: empty, or `{}`. */
export interface NoFields {
}

/** A page of operations, the newest first; it may be short, and even empty, before the end. */
export interface OperationPage {
  operations: OperationState[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** Work that continues after the answer. */
export interface OperationStarted {
  /** opaque: ask GET /operations/{id} how far it is */
  operation: string;
}

/** How far an operation is. */
export interface OperationState {
  id: string;
  /** backfill: of a new receiver; replay: of what a topic's log has */
  kind: "backfill" | "fan_out" | "purge" | "redrive" | "replay" | "rewind";
  state: "failed" | "running" | "succeeded";
  /** messages so far */
  done: number;
  /** RFC 3339 in UTC with milliseconds */
  started_at: string;
  /** RFC 3339 in UTC with milliseconds */
  finished_at?: string;
  detail?: string;
  /** the queue's name then */
  queue?: string;
  /** of a backfill */
  receiver?: string;
  /** of a replay */
  topic?: string;
  /** of a replay */
  subscription?: string;
  /** the access key that asked for it; absent if none did */
  key_id?: string;
}

/** The body of a peek. */
export interface PeekRequest {
  /** an integer from 1 to 16; 1 unless given */
  max?: number;
  /** the cursor of the page before */
  cursor?: string;
  dead_letter?: DeadLetterFilter;
  state?: "active" | "delayed" | "inactive";
}

/** A message in the state that was asked for, not claimed. */
export interface PeekedMessage {
  id: string;
  body?: string;
  body_base64?: string;
  attributes: Record<string, string | Bytes>;
  tags: string[];
  group?: string;
  /** absent: 1, the lowest */
  priority?: number;
  /** RFC 3339 in UTC with milliseconds */
  sent_at: string;
  /** the account that sent it */
  sender: string;
  /**
   * the id of its access key, where the queue or topic has `sender: key`: shown to that account
   * alone
   */
  sender_key?: string;
  receive_count: number;
  /** RFC 3339 in UTC with milliseconds */
  visible_at: string;
  /** RFC 3339 in UTC with milliseconds */
  expires_at: string;
  /** RFC 3339 in UTC with milliseconds */
  first_received_at?: string;
  dead_letter?: DeadLetterNote;
  /** until when its sender waits for a reply, if it does */
  reply_by?: string;
}

/** Messages of one state; none is claimed. A page may be empty and have a cursor. */
export interface PeekedMessages {
  messages: PeekedMessage[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** A message as a URL gets it, with `content_format` `json`. */
export interface PostedMessage {
  /** the account of the topic */
  TopicOwner: string;
  topicName: string;
  subscriptionName: string;
  msgId: string;
  /** the body; of bytes, their base64 */
  msgBody: string;
  /** seconds since the epoch */
  publishTime: number;
  /** where the body is bytes */
  bodyEncoding?: "base64";
  /** a value of bytes is an object with their base64 */
  msgAttributes?: Record<string, string | { base64: string }>;
  msgTags?: string[];
  /** who published it, if that is not the topic's account */
  sender?: string;
}

/** A publish that nobody sees before its commit. */
export interface Prepared {
  /** names the half message to commit or roll back */
  handle: string;
  /** from then on its producers are asked for the decision */
  check_at: string;
  /** from then on it can only be rolled back */
  expires_at: string;
}

/** The reason of a refusal (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** stable: for programs to decide by */
  code: string;
  request_id: string;
  /** the value that is refused */
  parameter?: string;
  /** of a log: to read on behind the message that no answer holds */
  cursor?: string;
}

/** One message of a publish. */
export interface PublishMessage {
  /** a text of at least one byte */
  body?: string;
  /** bytes, in the place of `body` */
  body_base64?: string;
  /** at most 10, with values of at most 1,024 bytes */
  attributes?: Record<string, string | Base64>;
  /** at most 10, of 1 to 16 characters */
  tags?: string[];
  /** a text of 1 to 128 characters */
  group?: string;
  /** a text of 1 to 128 characters */
  deduplication_id?: string;
  /** at most 64 bytes and 15 dots */
  routing_key?: string;
  /** an integer from 0 to 86,399 seconds */
  delay_seconds?: number;
  /** an RFC 3339 time, or seconds since the beginning of 1970 in UTC */
  deliver_at?: string | number;
}

/** The body of a publish. */
export interface PublishRequest {
  /** an array of 1 to 16 messages */
  messages: PublishMessage[];
  atomic?: boolean;
  /**
   * a ULID of the caller's own, at most 120 s old: the call that is repeated with it is known again
   */
  attempt?: string;
  transaction?: TransactionInput;
}

/** A message that was published; with `atomic: false` an entry may be an `error` instead. */
export interface PublishedMessage {
  id?: string;
  /** subscriptions that get it; 0: nothing is kept */
  matched?: number;
  /** RFC 3339 in UTC with milliseconds */
  sent_at?: string;
  error?: Problem;
}

/** One entry for each message, in the order published; none before a commit. */
export interface PublishedMessages {
  messages: PublishedMessage[];
  transaction?: Prepared;
}

/** A queue. */
export interface QueueAttributes {
  name: string;
  id: string;
  message_retention_seconds: number;
  visibility_timeout_seconds: number;
  receive_wait_seconds: number;
  delay_seconds: number;
  max_message_bytes: number;
  max_messages: number;
  rewind_seconds: number;
  dead_letter: DeadLetter | null;
  retry: RetryPolicy | null;
  ordered: boolean;
  fair: boolean;
  max_in_flight: number | null;
  rate: number | null;
  priorities: number | null;
  ageing_seconds: number | null;
  send_rate: number | null;
  receive_rate: number | null;
  partitions: number;
  invoke: Invoke | null;
  description: string | null;
  labels: Record<string, string>;
  paused: boolean;
  sender: "account" | "key";
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC with milliseconds */
  modified_at: string;
}

/** Attributes as a caller gives them; missing ones are UNSET. */
export interface QueueInput {
  /** an integer from 60 to 1,296,000 seconds; 345600 unless given */
  message_retention_seconds?: number;
  /** an integer from 1 to 43,200 seconds; 30 unless given */
  visibility_timeout_seconds?: number;
  /** a number from 0 to 30 seconds; 0.2 unless given */
  receive_wait_seconds?: number;
  /** an integer from 0 to 1,296,000 seconds; 0 unless given */
  delay_seconds?: number;
  /** an integer from 1,024 to 4,194,304; 65536 unless given */
  max_message_bytes?: number;
  /** an integer from 1,000,000 to 1,000,000,000; 100000000 unless given */
  max_messages?: number;
  /** an integer from 0 to 1,296,000 seconds; 0 unless given */
  rewind_seconds?: number;
  dead_letter?: DeadLetterInput | null;
  retry?: RetryPolicy | null;
  ordered?: boolean;
  fair?: boolean;
  max_in_flight?: number | null;
  rate?: number | null;
  priorities?: number | null;
  ageing_seconds?: number | null;
  send_rate?: number | null;
  receive_rate?: number | null;
  /** an integer from 1 to 255; 4 unless given */
  partitions?: number;
  invoke?: InvokeInput | null;
  description?: string | null;
  /** at most 50 pairs of texts, of 4,096 bytes together */
  labels?: Record<string, string>;
  paused?: boolean;
  sender?: "account" | "key";
}

/** Attributes as a caller gives them; missing ones are UNSET. */
export interface QueueInputChange {
  /** an integer from 60 to 1,296,000 seconds */
  message_retention_seconds?: number;
  /** an integer from 1 to 43,200 seconds */
  visibility_timeout_seconds?: number;
  /** a number from 0 to 30 seconds */
  receive_wait_seconds?: number;
  /** an integer from 0 to 1,296,000 seconds */
  delay_seconds?: number;
  /** an integer from 1,024 to 4,194,304 */
  max_message_bytes?: number;
  /** an integer from 1,000,000 to 1,000,000,000 */
  max_messages?: number;
  /** an integer from 0 to 1,296,000 seconds */
  rewind_seconds?: number;
  dead_letter?: DeadLetterInput | null;
  retry?: RetryPolicy | null;
  ordered?: boolean;
  fair?: boolean;
  max_in_flight?: number | null;
  rate?: number | null;
  priorities?: number | null;
  ageing_seconds?: number | null;
  send_rate?: number | null;
  receive_rate?: number | null;
  /** an integer from 1 to 255 */
  partitions?: number;
  invoke?: InvokeInput | null;
  description?: string | null;
  /** at most 50 pairs of texts, of 4,096 bytes together */
  labels?: Record<string, string>;
  paused?: boolean;
  sender?: "account" | "key";
}

/** A page of queues, by name. */
export interface QueuePage {
  queues: QueueAttributes[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** A queue, its counts of messages, and the state of its function's breaker. */
export interface QueueWithCounts {
  name: string;
  id: string;
  message_retention_seconds: number;
  visibility_timeout_seconds: number;
  receive_wait_seconds: number;
  delay_seconds: number;
  max_message_bytes: number;
  max_messages: number;
  rewind_seconds: number;
  dead_letter: DeadLetter | null;
  retry: RetryPolicy | null;
  ordered: boolean;
  fair: boolean;
  max_in_flight: number | null;
  rate: number | null;
  priorities: number | null;
  ageing_seconds: number | null;
  send_rate: number | null;
  receive_rate: number | null;
  partitions: number;
  invoke: Invoke | null;
  description: string | null;
  labels: Record<string, string>;
  paused: boolean;
  sender: "account" | "key";
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC with milliseconds */
  modified_at: string;
  counts: Counts;
  region: string;
  /** with a breaker; open: one message at a time is tried */
  breaker_state?: "closed" | "open";
  /** RFC 3339 in UTC with milliseconds */
  breaker_open_since?: string;
  /** while open: why the newest message failed */
  breaker_error?: string;
}

/**
 * Counted by the meter: what happened is here a little later, mostly within a minute. Twelve
 * intervals of five minutes; with `hours` in the query as many of an hour each.
 */
export interface RatesOfLastHour {
  /** the beginning of the first interval */
  starts_at: string;
  interval_seconds: number;
  /** in the order of the query, by kind */
  rates: ResourceRates[];
}

/** The body of a receive. */
export interface ReceiveRequest {
  /** an integer from 1 to 16; 1 unless given */
  max?: number;
  /** a number from 0 to 30 seconds */
  wait_seconds?: number;
  /** an integer from 1 to 43,200 seconds */
  visibility_timeout_seconds?: number;
  /** one of the queue's receivers; without it, the queue itself */
  receiver?: string;
  /** a text of 1 to 128 characters: only messages of this group, in an ordered or a fair queue */
  group?: string;
  where?: Where;
  /** the after of the call before */
  after?: string;
  /**
   * a ULID of the caller's own, at most 120 s old: the call that is repeated with it is known again
   */
  attempt?: string;
  repeat?: boolean;
  /** an array of at most 16 receipts, whose messages are deleted first */
  delete?: string[];
}

/** A message that the caller holds until `visible_at`. */
export interface ReceivedMessage {
  id: string;
  body?: string;
  body_base64?: string;
  attributes: Record<string, string | Bytes>;
  tags: string[];
  group?: string;
  /** absent: 1, the lowest */
  priority?: number;
  /** RFC 3339 in UTC with milliseconds */
  sent_at: string;
  /** the account that sent it */
  sender: string;
  /**
   * the id of its access key, where the queue or topic has `sender: key`: shown to that account
   * alone
   */
  sender_key?: string;
  receive_count: number;
  /** RFC 3339 in UTC with milliseconds */
  visible_at: string;
  /** RFC 3339 in UTC with milliseconds */
  expires_at: string;
  /** RFC 3339 in UTC with milliseconds */
  first_received_at?: string;
  dead_letter?: DeadLetterNote;
  /** until when its sender waits for a reply, if it does */
  reply_by?: string;
  /** opaque: deletes the message, or changes its lease */
  receipt: string;
}

/** Messages that the caller holds now; empty if there was none in time. */
export interface ReceivedMessages {
  messages: ReceivedMessage[];
  /** receipts of `delete` whose messages are deleted */
  deleted?: string[];
  failed?: Failure[];
  /** true: nobody receives from it until it is resumed */
  paused?: boolean;
  /**
   * with `where`: whether everything was looked at, by this call and those whose `after` it goes on
   * behind
   */
  seen_all?: boolean;
  /** with `where`: opaque, for the next call */
  after?: string;
  /** after the deletes, why nothing could be received */
  error?: Problem;
}

/** An independent receiver of a queue. */
export interface ReceiverAttributes {
  name: string;
  id: string;
  start: string;
  /** RFC 3339 in UTC with milliseconds */
  starts_at: string;
  filter: Filter | null;
  paused: boolean;
  receive_rate: number | null;
  labels: Record<string, string>;
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC with milliseconds */
  modified_at: string;
  /** is copying older messages to it; it gets no other messages yet */
  operation?: string;
}

/** The body of `PATCH …/receivers/{receiver}`. */
export interface ReceiverChangeInput {
  paused?: boolean;
  receive_rate?: number | null;
  /** at most 50 pairs of texts, of 4,096 bytes together */
  labels?: Record<string, string>;
}

/** The body of `PUT …/receivers/{receiver}`. */
export interface ReceiverInput {
  /**
   * latest: messages sent after the answer; earliest: also all messages in the queue then, and what
   * its log has; or a time since which the log has everything; "latest" unless given
   */
  start?: string;
  filter?: Filter | null;
}

/** A page of a queue's receivers, by name. */
export interface ReceiverPage {
  receivers: ReceiverAttributes[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** A receiver and how many messages wait for it. */
export interface ReceiverWithCounts {
  name: string;
  id: string;
  start: string;
  /** RFC 3339 in UTC with milliseconds */
  starts_at: string;
  filter: Filter | null;
  paused: boolean;
  receive_rate: number | null;
  labels: Record<string, string>;
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC with milliseconds */
  modified_at: string;
  /** is copying older messages to it; it gets no other messages yet */
  operation?: string;
  counts: Counts;
}

/** The body of a redelivery: the messages that are delivered once more. */
export interface RedeliverRequest {
  /** an array of 1 to 100 ids of messages */
  ids: string[];
}

/** The body of a redrive. */
export interface RedriveRequest {
  /** a queue's name */
  to?: string;
  /** an integer from 1 to 1,000,000,000 */
  max_messages?: number;
  dead_letter?: DeadLetterFilter;
  /** an array of 1 to 100 ids of messages */
  ids?: string[];
  /** an array of 1 to 16 receipts, alone or beside to */
  receipts?: string[];
}

/** A reply that is stored; its message is deleted. */
export interface Replied {
  id: string;
  /** RFC 3339 in UTC with milliseconds */
  replied_at: string;
}

/** A reply's content. */
export interface ReplyInput {
  /** a text of at least one byte */
  body?: string;
  /** bytes, in the place of `body` */
  body_base64?: string;
  /** at most 10, with values of at most 1,024 bytes */
  attributes?: Record<string, string | Base64>;
}

/** The body of a reply. */
export interface ReplyRequest {
  /** a receipt of 1 to 2,048 characters */
  receipt: string;
  reply: ReplyInput;
}

/** The body of a change of a message's due time: one of the two. */
export interface RescheduleRequest {
  /** an integer from 0 to 1,296,000 seconds, from now */
  delay_seconds?: number;
  /** an RFC 3339 time, or seconds since the beginning of 1970 in UTC */
  deliver_at?: string | number;
}

/**
 * Messages of each interval, the oldest first; the last one still runs. A figure that a kind of
 * resource does not count is 0: a topic counts only `published`, and a subscription that hands its
 * messages to a queue, or broadcasts, nothing.
 */
export interface ResourceRates {
  kind: "queue" | "receiver" | "subscription" | "topic";
  /** as the query has it */
  name: string;
  sent: number[];
  /** receipts: a message that comes again is counted again */
  received: number[];
  deleted: number[];
  expired: number[];
  /** moved away from here as dead letters */
  dead_lettered: number[];
  published: number[];
  /** came to a receiver or a group, or were taken by a URL */
  delivered: number[];
  /** posts to a URL, also failed posts */
  attempts: number[];
  /** given up without a dead-letter queue */
  dropped: number[];
  rewound: number[];
  /** messages that were stored, in any state, at the end of each interval */
  kept: number[];
}

/** The retry policy in force, the default if `retry` is null; absent if nothing is retried. */
export interface RetryInForce {
  policy: string;
  /** in seconds; the last one repeats */
  waits: number[];
  /** the share of each wait that is drawn */
  jitter: number;
  /** null: no end */
  max_retries: number | null;
}

/**
 * How long a message waits after each delivery that failed: for URLs from the attempt's start,
 * elsewhere from the end of the lease. n retries are n + 1 deliveries.
 */
export type RetryPolicy = { policy: "exponential_decay" } | { policy: "backoff" } | { policy: "unordered"; max_retries?: number } | { policy: "ordered"; interval_seconds?: number; max_retries?: number } | { policy: "http_ordered" } | { policy: "http_unordered" } | { policy: "custom"; jitter?: number; waits: number[] };

/** The body of a rewind. */
export interface RewindRequest {
  /** an RFC 3339 time, or seconds since the beginning of 1970 in UTC */
  to: string | number;
}

/** The body of `POST /keys/{id}/rotate`: how long the secret before is good as well. */
export interface RotateRequest {
  /** an integer from 0 to 604,800 seconds; 86400 unless given */
  grace_seconds?: number;
}

/** A schedule: when it fires, and its message. */
export interface ScheduleAttributes {
  name: string;
  id: string;
  message: ScheduledContent;
  missed: "all" | "none" | "one";
  /** RFC 3339 in UTC with milliseconds */
  in_force_from: string;
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC with milliseconds */
  modified_at: string;
  queue?: string;
  topic?: string;
  cron?: string;
  time_zone?: string;
  every_seconds?: number;
  next_at: string | null;
  last_error: ScheduleFailure | null;
}

/** Why the last time of a schedule did not fire; it is tried again at the next time. */
export interface ScheduleFailure {
  /** RFC 3339 in UTC with milliseconds */
  due_at: string;
  code: string;
  detail: string;
}

/** The body of `PUT /schedules/{schedule}`. */
export interface ScheduleInput {
  message: ScheduledMessage;
  /** a queue of the account, not an ordered one */
  queue?: string;
  /** or a topic of the account */
  topic?: string;
  /** minute, hour, day of month, month and day of week, such as 0 8 * * 1-5 */
  cron?: string;
  /** a time zone of IANA, such as Europe/Berlin */
  time_zone?: string;
  /** an integer from 60 to 31,536,000 seconds, a multiple of 60 */
  every_seconds?: number;
  missed?: "all" | "none" | "one";
}

/** A page of the account's schedules, by name. */
export interface SchedulePage {
  schedules: ScheduleAttributes[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** The message of a schedule, as it was given. */
export interface ScheduledContent {
  body?: string;
  body_base64?: string;
  attributes: Record<string, string | Bytes>;
  tags: string[];
  group?: string;
  priority?: number;
  routing_key?: string;
}

/** The message of a schedule. */
export interface ScheduledMessage {
  body?: string;
  body_base64?: string;
  attributes?: Record<string, string | Base64>;
  tags?: string[];
  /** a text of 1 to 128 characters */
  group?: string;
  /** an integer from 1 to 32 */
  priority?: number;
  routing_key?: string;
}

/** For each right the queues and topics that a key has it on; `all` of the account, or some. */
export interface Scope {
  send?: "all" | Listed;
  receive?: "all" | Listed;
  manage?: "all" | Listed;
}

/** One message of a send. */
export interface SendMessage {
  /** a text of at least one byte */
  body?: string;
  /** bytes, in the place of `body` */
  body_base64?: string;
  /** at most 10, with values of at most 1,024 bytes */
  attributes?: Record<string, string | Base64>;
  /** at most 10, of 1 to 16 characters */
  tags?: string[];
  /** a text of 1 to 128 characters */
  group?: string;
  /** a text of 1 to 128 characters */
  deduplication_id?: string;
  /** an integer from 0 to 1,296,000 seconds */
  delay_seconds?: number;
  /** an integer from 1 to 32 */
  priority?: number;
  /** a text of 1 to 128 characters */
  replace?: string;
  /** an integer from 1 to 1,296,000 */
  replace_within_seconds?: number;
  reply?: AskedReply;
  /** an integer from 1 to 43,200 seconds */
  visibility_timeout_seconds?: number;
}

/** The body of a send. */
export interface SendRequest {
  /** an array of 1 to 16 messages */
  messages: SendMessage[];
  atomic?: boolean;
  /**
   * a ULID of the caller's own, at most 120 s old: the call that is repeated with it is known again
   */
  attempt?: string;
}

/** A message that is stored; with `atomic: false` an entry may be an `error` instead. */
export interface SentMessage {
  id?: string;
  /** of the body's bytes, in hex */
  body_md5?: string;
  /** RFC 3339 in UTC with milliseconds */
  sent_at?: string;
  /** of a message with `replace`: the one whose place it took, or null */
  replaced?: string | null;
  /** of a message with `reply`: its deadline */
  reply_by?: string;
  error?: Problem;
}

/** One entry for each message, in the order sent. */
export interface SentMessages {
  messages: SentMessage[];
}

/** A page of the grants of other accounts to the caller's. */
export interface SharedPage {
  grants: SharedResource[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** A queue or a topic that another account shares with the caller's, as calls address it. */
export interface SharedResource {
  queue?: string;
  topic?: string;
  account: string;
  permission: string;
}

/** The secret that signs what a URL gets. */
export interface SigningSecret {
  /** `whsec_` and base64 of 24 bytes */
  secret: string;
}

/** A subscription; `made_by`: the account that made it, if it is not the topic's own. */
export interface SubscriptionAttributes {
  name: string;
  topic: string;
  id: string;
  protocol: "http" | "pull" | "queue";
  endpoint?: string;
  filter: Filter | null;
  retry: RetryPolicy | null;
  retry_in_force?: RetryInForce;
  content_format: "json" | "simplified";
  dead_letter_queue: string | null;
  /** why its own dead-letter queue could not be made */
  dead_letter_error?: string;
  labels: Record<string, string>;
  max_in_flight?: number;
  /** messages a second at most; null: as many as there are */
  rate?: number | null;
  /** whether what the URL answers to posts that fail is kept for a day */
  keep_answers?: boolean;
  /** null: posts never stop */
  breaker?: Breaker | null;
  mode?: "broadcasting" | "clustering";
  ordered?: boolean;
  start?: string;
  invoke?: Invoke | null;
  /** whether its messages wait until it is resumed */
  paused?: boolean;
  /** true: paused because its URL answered 410 */
  gone?: boolean;
  made_by?: string;
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC with milliseconds */
  modified_at: string;
}

/** Messages by state. */
export interface SubscriptionCounts {
  active: number;
  inactive: number;
  delayed: number;
  /** left out: exact; true: not all were read, the rest is counted late */
  approximate?: boolean;
}

/** A subscription as a caller gives it; attributes that are not given are UNSET. */
export interface SubscriptionInput {
  protocol?: "http" | "pull" | "queue";
  /** a queue's name, or a URL of at most 500 characters */
  endpoint?: string;
  filter?: Filter | null;
  retry?: RetryPolicy | null;
  content_format?: "json" | "simplified";
  /** a queue's name; null unless given */
  dead_letter_queue?: string | null;
  /** an integer from 1 to 256; 16 unless given */
  max_in_flight?: number;
  rate?: number | null;
  keep_answers?: boolean;
  breaker?: BreakerInput | null;
  mode?: "broadcasting" | "clustering";
  ordered?: boolean;
  /** latest, earliest or a time within the last 24 hours; "latest" unless given */
  start?: string;
  invoke?: InvokeInput | null;
  /** at most 50 pairs of texts, of 4,096 bytes together */
  labels?: Record<string, string>;
}

/** A subscription as a caller gives it; attributes that are not given are UNSET. */
export interface SubscriptionInputChange {
  protocol?: "http" | "pull" | "queue";
  /** a queue's name, or a URL of at most 500 characters */
  endpoint?: string;
  filter?: Filter | null;
  retry?: RetryPolicy | null;
  content_format?: "json" | "simplified";
  /** a queue's name */
  dead_letter_queue?: string | null;
  /** an integer from 1 to 256 */
  max_in_flight?: number;
  rate?: number | null;
  keep_answers?: boolean;
  breaker?: BreakerInput | null;
  mode?: "broadcasting" | "clustering";
  ordered?: boolean;
  /** latest, earliest or a time within the last 24 hours */
  start?: string;
  invoke?: InvokeInput | null;
  /** at most 50 pairs of texts, of 4,096 bytes together */
  labels?: Record<string, string>;
}

/** A page of a topic's subscriptions, by name. */
export interface SubscriptionPage {
  subscriptions: SubscriptionAttributes[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** A subscription, its counts, and the state of its deliveries. */
export interface SubscriptionWithState {
  name: string;
  topic: string;
  id: string;
  protocol: "http" | "pull" | "queue";
  endpoint?: string;
  filter: Filter | null;
  retry: RetryPolicy | null;
  retry_in_force?: RetryInForce;
  content_format: "json" | "simplified";
  dead_letter_queue: string | null;
  /** why its own dead-letter queue could not be made */
  dead_letter_error?: string;
  labels: Record<string, string>;
  max_in_flight?: number;
  /** messages a second at most; null: as many as there are */
  rate?: number | null;
  /** whether what the URL answers to posts that fail is kept for a day */
  keep_answers?: boolean;
  /** null: posts never stop */
  breaker?: Breaker | null;
  mode?: "broadcasting" | "clustering";
  ordered?: boolean;
  start?: string;
  invoke?: Invoke | null;
  /** whether its messages wait until it is resumed */
  paused?: boolean;
  /** true: paused because its URL answered 410 */
  gone?: boolean;
  made_by?: string;
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC with milliseconds */
  modified_at: string;
  state: "delivering" | "paused" | "retrying" | "unconfirmed";
  counts?: SubscriptionCounts;
  /** with `counts`; 0 if no message is active */
  oldest_active_age_seconds?: number;
  /** RFC 3339 in UTC with milliseconds */
  next_attempt_at?: string;
  last_error?: string | null;
  /** with a breaker; open: one message at a time is tried */
  breaker_state?: "closed" | "open";
  /** RFC 3339 in UTC with milliseconds */
  breaker_open_since?: string;
  /** while open: why the newest message failed */
  breaker_error?: string;
  /** with `keep_answers`: the newest of each status, of 20 statuses */
  failed_answers?: FailedAnswer[];
}

/** A topic. */
export interface TopicAttributes {
  name: string;
  id: string;
  filter: "routing_key" | "tags";
  max_message_bytes: number;
  /** fixed: a message's whole life */
  message_retention_seconds: number;
  partitions: number;
  description: string | null;
  labels: Record<string, string>;
  sender: "account" | "key";
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC with milliseconds */
  modified_at: string;
}

/** Messages not yet taken by every subscription that gets them. */
export interface TopicCounts {
  active: number;
  /** true: there are more */
  approximate?: boolean;
}

/** A page of the grants on a topic, by account. */
export interface TopicGrantPage {
  grants: TopicGrantState[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** The body of `PUT /topics/{topic}/grants/{account}`. */
export interface TopicGrantRequest {
  permission: "admin" | "full" | "info" | "publish" | "publish_subscribe" | "subscribe";
}

/** A grant: the permission of another account on a topic. */
export interface TopicGrantState {
  account: string;
  permission: "admin" | "full" | "info" | "publish" | "publish_subscribe" | "subscribe";
}

/** Attributes as a caller gives them; missing ones are UNSET. */
export interface TopicInput {
  filter?: "routing_key" | "tags";
  /** an integer from 1,024 to 4,194,304; 65536 unless given */
  max_message_bytes?: number;
  /** an integer from 1 to 255; 8 unless given */
  partitions?: number;
  description?: string | null;
  /** at most 50 pairs of texts, of 4,096 bytes together */
  labels?: Record<string, string>;
  sender?: "account" | "key";
}

/** Attributes as a caller gives them; missing ones are UNSET. */
export interface TopicInputChange {
  filter?: "routing_key" | "tags";
  /** an integer from 1,024 to 4,194,304 */
  max_message_bytes?: number;
  /** an integer from 1 to 255 */
  partitions?: number;
  description?: string | null;
  /** at most 50 pairs of texts, of 4,096 bytes together */
  labels?: Record<string, string>;
  sender?: "account" | "key";
}

/** A page of topics, by name. */
export interface TopicPage {
  topics: TopicAttributes[];
  /** opaque: the cursor of the next page; absent at the end of a listing */
  cursor?: string;
}

/** A topic and how many messages are under way. */
export interface TopicWithCounts {
  name: string;
  id: string;
  filter: "routing_key" | "tags";
  max_message_bytes: number;
  /** fixed: a message's whole life */
  message_retention_seconds: number;
  partitions: number;
  description: string | null;
  labels: Record<string, string>;
  sender: "account" | "key";
  /** RFC 3339 in UTC with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC with milliseconds */
  modified_at: string;
  counts: TopicCounts;
  region: string;
}

/** How a publish that is to be committed or rolled back later is asked about. */
export interface TransactionInput {
  /** an integer from 1 to 3,600 seconds; 60 unless given */
  check_after_seconds?: number;
  /** an integer from 1 to 100; 15 unless given */
  max_checks?: number;
  /** the producers that are asked; "default" unless given */
  group?: string;
}

/** A publish that the caller is to commit or roll back. */
export interface UndecidedTransaction {
  /** names the half message to commit or roll back */
  handle: string;
  messages: HalfMessage[];
  /** how often it was handed out, this time included */
  checks: number;
  max_checks: number;
  /** RFC 3339 in UTC with milliseconds */
  prepared_at: string;
  /** until then nobody else is asked */
  held_until: string;
  /** from then on it can only be rolled back */
  expires_at: string;
}

/** Undecided half messages; empty if there are none. */
export interface UndecidedTransactions {
  transactions: UndecidedTransaction[];
}

/** An hour of the last day with far more use than any of the four weeks before. */
export interface UnusualHour {
  /** RFC 3339 in UTC with milliseconds */
  hour: string;
  resource: string;
  kind: string;
  count: number;
  /** of the busiest hour before */
  usual_most: number;
}

/** One message of a visibility change. */
export interface VisibilityEntry {
  /** a receipt of 1 to 2,048 characters */
  receipt: string;
  /** an integer from 0 to 43,200 seconds */
  visibility_timeout_seconds: number;
}

/** The body of a visibility change. */
export interface VisibilityRequest {
  /** an array of 1 to 16 entries */
  entries: VisibilityEntry[];
}

/** The attribute that a message must have to be received. */
export interface Where {
  /** a text of 1 to 256 characters */
  name: string;
  value: string | Base64;
}

/** Each call: its path's and query's values, its body, its answer. */
export interface Calls {
  /** Creates a queue, or finds one with the attributes that are given */
  "PUT /queues/{queue}": {
    path: { queue: string };
    query?: { exact?: boolean };
    body?: QueueInput;
    answer: QueueAttributes;
  };
  /** Changes some attributes of a queue */
  "PATCH /queues/{queue}": {
    path: { queue: string };
    query?: {};
    body?: QueueInputChange;
    answer: QueueAttributes;
  };
  /** Returns a queue's attributes, and the counts of its messages */
  "GET /queues/{queue}": {
    path: { queue: string };
    query?: {};
    body?: undefined;
    answer: QueueWithCounts;
  };
  /** Deletes a queue; only its owner may */
  "DELETE /queues/{queue}": {
    path: { queue: string };
    query?: {};
    body?: undefined;
    answer: null;
  };
  /** Returns a page of the caller's queues */
  "GET /queues": {
    path?: {};
    query?: { cursor?: string; limit?: number; prefix?: string };
    body?: undefined;
    answer: QueuePage;
  };
  /** Removes all messages sent before the call */
  "POST /queues/{queue}/purge": {
    path: { queue: string };
    query?: {};
    body?: NoFields;
    answer: OperationStarted;
  };
  /**
   * Makes deleted messages active again, from a time on; with one partition, and in each group of
   * an ordered queue, in order of sending
   */
  "POST /queues/{queue}/rewind": {
    path: { queue: string };
    query?: {};
    body: RewindRequest;
    answer: OperationStarted;
  };
  /** Sends dead letters back, or moves any queue's active messages to another one */
  "POST /queues/{queue}/redrive": {
    path: { queue: string };
    query?: {};
    body?: RedriveRequest;
    answer: OperationStarted;
  };
  /** Sends up to 16 messages to a queue; 201 if all are stored or none */
  "POST /queues/{queue}/messages": {
    path: { queue: string };
    query?: {};
    body: SendRequest;
    answer: SentMessages;
  };
  /** Returns a message's state, found within 50 read units; with `body=true` its body */
  "GET /queues/{queue}/messages/{id}": {
    path: { queue: string; id: string };
    query?: { body?: boolean; group?: string; receiver?: string };
    body?: undefined;
    answer: FoundMessage;
  };
  /** Cancels a message that was not received; from a receiver, if one is named */
  "DELETE /queues/{queue}/messages/{id}": {
    path: { queue: string; id: string };
    query?: { group?: string; receiver?: string };
    body?: undefined;
    answer: null;
  };
  /** Changes when a message is due that was not received */
  "PATCH /queues/{queue}/messages/{id}": {
    path: { queue: string; id: string };
    query?: { group?: string; receiver?: string };
    body?: RescheduleRequest;
    answer: FoundMessage;
  };
  /** Replies to a message that asks for it, and deletes the message */
  "POST /queues/{queue}/messages/{id}/reply": {
    path: { queue: string; id: string };
    query?: {};
    body: ReplyRequest;
    answer: Replied;
  };
  /** Waits for the reply to a message that the caller's account sent with `reply` */
  "GET /queues/{queue}/messages/{id}/reply": {
    path: { queue: string; id: string };
    query?: { reply_by?: string; wait_seconds?: number };
    body?: undefined;
    answer: AwaitedReply;
  };
  /** Claims messages of a queue, or of one of its receivers; before that, deletes others */
  "POST /queues/{queue}/messages/receive": {
    path: { queue: string };
    query?: {};
    body?: ReceiveRequest;
    answer: ReceivedMessages;
  };
  /** Returns messages of a queue in one state, without a claim */
  "POST /queues/{queue}/messages/peek": {
    path: { queue: string };
    query?: {};
    body?: PeekRequest;
    answer: PeekedMessages;
  };
  /** Deletes messages that are done */
  "POST /queues/{queue}/messages/delete": {
    path: { queue: string };
    query?: {};
    body: DeleteRequest;
    answer: DeletedReceipts;
  };
  /** Changes the visibility timeout of messages: they are held for longer or shorter */
  "POST /queues/{queue}/messages/visibility": {
    path: { queue: string };
    query?: {};
    body: VisibilityRequest;
    answer: ChangedReceipts;
  };
  /** Gives messages back, so that they can be received again */
  "POST /queues/{queue}/messages/give-back": {
    path: { queue: string };
    query?: {};
    body: GiveBackRequest;
    answer: GivenBackReceipts;
  };
  /** Moves messages to the dead-letter queue, for good */
  "POST /queues/{queue}/messages/dead-letter": {
    path: { queue: string };
    query?: {};
    body: DeadLetterRequest;
    answer: DeletedReceipts;
  };
  /** Creates or changes a schedule: a message at times of a cron expression, or every n seconds */
  "PUT /schedules/{schedule}": {
    path: { schedule: string };
    query?: {};
    body: ScheduleInput;
    answer: ScheduleAttributes;
  };
  /** Returns a schedule, with its next time and its last error */
  "GET /schedules/{schedule}": {
    path: { schedule: string };
    query?: {};
    body?: undefined;
    answer: ScheduleAttributes;
  };
  /** Deletes a schedule */
  "DELETE /schedules/{schedule}": {
    path: { schedule: string };
    query?: {};
    body?: undefined;
    answer: null;
  };
  /** Returns a page of the account's schedules */
  "GET /schedules": {
    path?: {};
    query?: { cursor?: string; limit?: number; prefix?: string };
    body?: undefined;
    answer: SchedulePage;
  };
  /** Adds an independent receiver to a queue, or finds one with these attributes */
  "PUT /queues/{queue}/receivers/{receiver}": {
    path: { queue: string; receiver: string };
    query?: { exact?: boolean };
    body?: ReceiverInput;
    answer: ReceiverAttributes;
  };
  /** Changes some attributes of a receiver */
  "PATCH /queues/{queue}/receivers/{receiver}": {
    path: { queue: string; receiver: string };
    query?: {};
    body?: ReceiverChangeInput;
    answer: ReceiverAttributes;
  };
  /** Returns a receiver's attributes, and the counts of its messages */
  "GET /queues/{queue}/receivers/{receiver}": {
    path: { queue: string; receiver: string };
    query?: {};
    body?: undefined;
    answer: ReceiverWithCounts;
  };
  /** Removes a receiver of a queue */
  "DELETE /queues/{queue}/receivers/{receiver}": {
    path: { queue: string; receiver: string };
    query?: {};
    body?: undefined;
    answer: null;
  };
  /** Returns a page of a queue's receivers */
  "GET /queues/{queue}/receivers": {
    path: { queue: string };
    query?: { cursor?: string; limit?: number };
    body?: undefined;
    answer: ReceiverPage;
  };
  /**
   * Returns a page of the keys that received from a queue, or from one of its receivers, within
   * seven days, and when last
   */
  "GET /queues/{queue}/consumers": {
    path: { queue: string };
    query?: { cursor?: string; limit?: number; receiver?: string };
    body?: undefined;
    answer: ConsumerPage;
  };
  /** Creates a topic, or finds one with the attributes that are given */
  "PUT /topics/{topic}": {
    path: { topic: string };
    query?: { exact?: boolean };
    body?: TopicInput;
    answer: TopicAttributes;
  };
  /** Changes some attributes of a topic */
  "PATCH /topics/{topic}": {
    path: { topic: string };
    query?: {};
    body?: TopicInputChange;
    answer: TopicAttributes;
  };
  /**
   * Returns a topic's attributes, and the number of messages that some subscription has not taken
   */
  "GET /topics/{topic}": {
    path: { topic: string };
    query?: {};
    body?: undefined;
    answer: TopicWithCounts;
  };
  /** Deletes a topic and its subscriptions */
  "DELETE /topics/{topic}": {
    path: { topic: string };
    query?: {};
    body?: undefined;
    answer: null;
  };
  /** Returns a page of the caller's topics */
  "GET /topics": {
    path?: {};
    query?: { cursor?: string; limit?: number; prefix?: string };
    body?: undefined;
    answer: TopicPage;
  };
  /**
   * Publishes up to 16 messages to all subscriptions that they match; 201 if all are stored or none
   */
  "POST /topics/{topic}/messages": {
    path: { topic: string };
    query?: {};
    body: PublishRequest;
    answer: PublishedMessages;
  };
  /** Returns the topic's messages in order, for broadcasting consumers */
  "GET /topics/{topic}/messages": {
    path: { topic: string };
    query?: { after?: string; limit?: number };
    body?: undefined;
    answer: LogPage;
  };
  /** Returns the subscriptions that would get messages, or a filter's result; publishes none */
  "POST /topics/{topic}/match": {
    path: { topic: string };
    query?: {};
    body: MatchRequest;
    answer: MatchedMessages;
  };
  /** Publishes messages prepared with `transaction`; a repetition gets the same answer */
  "POST /topics/{topic}/half/commit": {
    path: { topic: string };
    query?: {};
    body: HandleRequest;
    answer: PublishedMessages;
  };
  /** Drops messages prepared with `transaction`; a repetition changes nothing */
  "POST /topics/{topic}/half/rollback": {
    path: { topic: string };
    query?: {};
    body: HandleRequest;
    answer: null;
  };
  /** Returns half messages that a group of producers must decide; the caller leases each */
  "POST /topics/{topic}/half/receive": {
    path: { topic: string };
    query?: {};
    body?: HalfReceiveRequest;
    answer: UndecidedTransactions;
  };
  /** Traces a message: its state at each subscription; with `body=true` its body */
  "GET /topics/{topic}/messages/{id}": {
    path: { topic: string; id: string };
    query?: { body?: boolean };
    body?: undefined;
    answer: MessageTrace;
  };
  /**
   * Subscribes a URL, a queue or a group of consumers; the answer for a new URL shows its signing
   * secret
   */
  "PUT /topics/{topic}/subscriptions/{subscription}": {
    path: { topic: string; subscription: string };
    query?: { exact?: boolean };
    body?: SubscriptionInput;
    answer: NewSubscription | SubscriptionAttributes;
  };
  /** Changes a subscription for all its members */
  "PATCH /topics/{topic}/subscriptions/{subscription}": {
    path: { topic: string; subscription: string };
    query?: {};
    body?: SubscriptionInputChange;
    answer: SubscriptionAttributes;
  };
  /** Returns a subscription's attributes, its counts, and the state of its deliveries */
  "GET /topics/{topic}/subscriptions/{subscription}": {
    path: { topic: string; subscription: string };
    query?: {};
    body?: undefined;
    answer: SubscriptionWithState;
  };
  /** Deletes a subscription */
  "DELETE /topics/{topic}/subscriptions/{subscription}": {
    path: { topic: string; subscription: string };
    query?: {};
    body?: undefined;
    answer: null;
  };
  /** Returns a page of the keys that received from a group within seven days, and when last */
  "GET /topics/{topic}/subscriptions/{subscription}/consumers": {
    path: { topic: string; subscription: string };
    query?: { cursor?: string; limit?: number };
    body?: undefined;
    answer: ConsumerPage;
  };
  /** Returns a page of a topic's subscriptions */
  "GET /topics/{topic}/subscriptions": {
    path: { topic: string };
    query?: { cursor?: string; limit?: number };
    body?: undefined;
    answer: SubscriptionPage;
  };
  /** Confirms a subscription by its token, or sends the endpoint a new token for the owner */
  "POST /topics/{topic}/subscriptions/{subscription}/confirm": {
    path: { topic: string; subscription: string };
    query?: {};
    body?: ConfirmRequest;
    answer: null;
  };
  /** Delivers everything published from a time on to a group again */
  "POST /topics/{topic}/subscriptions/{subscription}/rewind": {
    path: { topic: string; subscription: string };
    query?: {};
    body: GroupRewindRequest;
    answer: OperationStarted;
  };
  /** Delivers messages of the last day to a URL or a group again, by their ids */
  "POST /topics/{topic}/subscriptions/{subscription}/redeliver": {
    path: { topic: string; subscription: string };
    query?: {};
    body: RedeliverRequest;
    answer: OperationStarted;
  };
  /** Returns the current signing secret; it changes when the deployment's secret does */
  "POST /topics/{topic}/subscriptions/{subscription}/secret": {
    path: { topic: string; subscription: string };
    query?: {};
    body?: NoFields;
    answer: SigningSecret;
  };
  /** Pauses a URL or a group: its messages wait, within their life */
  "POST /topics/{topic}/subscriptions/{subscription}/pause": {
    path: { topic: string; subscription: string };
    query?: {};
    body?: NoFields;
    answer: SubscriptionAttributes;
  };
  /** Resumes a paused URL or group, beginning with the messages that wait */
  "POST /topics/{topic}/subscriptions/{subscription}/resume": {
    path: { topic: string; subscription: string };
    query?: {};
    body?: NoFields;
    answer: SubscriptionAttributes;
  };
  /** Posts messages that wait for their retry to a URL now, each once */
  "POST /topics/{topic}/subscriptions/{subscription}/retry": {
    path: { topic: string; subscription: string };
    query?: {};
    body?: NoFields;
    answer: null;
  };
  /** Returns, in order, the messages that a broadcasting subscription's filter selects */
  "GET /topics/{topic}/subscriptions/{subscription}/messages": {
    path: { topic: string; subscription: string };
    query?: { after?: string; limit?: number };
    body?: undefined;
    answer: LogPage;
  };
  /** Claims messages of a pull subscription; before that, deletes others */
  "POST /topics/{topic}/subscriptions/{subscription}/messages/receive": {
    path: { topic: string; subscription: string };
    query?: {};
    body?: ReceiveRequest;
    answer: ReceivedMessages;
  };
  /** Returns messages of a pull subscription in one state, without a claim */
  "POST /topics/{topic}/subscriptions/{subscription}/messages/peek": {
    path: { topic: string; subscription: string };
    query?: {};
    body?: PeekRequest;
    answer: PeekedMessages;
  };
  /** Deletes messages that are done */
  "POST /topics/{topic}/subscriptions/{subscription}/messages/delete": {
    path: { topic: string; subscription: string };
    query?: {};
    body: DeleteRequest;
    answer: DeletedReceipts;
  };
  /** Changes the visibility timeout of messages: they are held for longer or shorter */
  "POST /topics/{topic}/subscriptions/{subscription}/messages/visibility": {
    path: { topic: string; subscription: string };
    query?: {};
    body: VisibilityRequest;
    answer: ChangedReceipts;
  };
  /** Gives messages back, so that they can be received again */
  "POST /topics/{topic}/subscriptions/{subscription}/messages/give-back": {
    path: { topic: string; subscription: string };
    query?: {};
    body: GiveBackRequest;
    answer: GivenBackReceipts;
  };
  /** Moves messages to the dead-letter queue, for good */
  "POST /topics/{topic}/subscriptions/{subscription}/messages/dead-letter": {
    path: { topic: string; subscription: string };
    query?: {};
    body: DeadLetterRequest;
    answer: DeletedReceipts;
  };
  /**
   * Returns a page of the purges, rewinds, redrives, backfills and replays of the last seven days;
   * a key with a scope sees only resources that it manages
   */
  "GET /operations": {
    path?: {};
    query?: { cursor?: string; kind?: "backfill" | "fan_out" | "purge" | "redrive" | "replay" | "rewind"; limit?: number; queue?: string; state?: "failed" | "running" | "succeeded"; topic?: string };
    body?: undefined;
    answer: OperationPage;
  };
  /** Returns the state of an operation */
  "GET /operations/{id}": {
    path: { id: string };
    query?: {};
    body?: undefined;
    answer: OperationState;
  };
  /** Grants another account a permission on a queue */
  "PUT /queues/{queue}/grants/{account}": {
    path: { queue: string; account: string };
    query?: {};
    body: GrantRequest;
    answer: GrantState;
  };
  /** Returns the grant on a queue to another account */
  "GET /queues/{queue}/grants/{account}": {
    path: { queue: string; account: string };
    query?: {};
    body?: undefined;
    answer: GrantState;
  };
  /** Removes a grant */
  "DELETE /queues/{queue}/grants/{account}": {
    path: { queue: string; account: string };
    query?: {};
    body?: undefined;
    answer: null;
  };
  /** Returns a page of the grants on a queue */
  "GET /queues/{queue}/grants": {
    path: { queue: string };
    query?: { cursor?: string; limit?: number };
    body?: undefined;
    answer: GrantPage;
  };
  /** Grants another account a permission on a topic */
  "PUT /topics/{topic}/grants/{account}": {
    path: { topic: string; account: string };
    query?: {};
    body: TopicGrantRequest;
    answer: TopicGrantState;
  };
  /** Returns the grant on a topic to another account */
  "GET /topics/{topic}/grants/{account}": {
    path: { topic: string; account: string };
    query?: {};
    body?: undefined;
    answer: TopicGrantState;
  };
  /** Removes a grant on a topic; subscriptions that the account made are still there */
  "DELETE /topics/{topic}/grants/{account}": {
    path: { topic: string; account: string };
    query?: {};
    body?: undefined;
    answer: null;
  };
  /** Returns a page of the grants on a topic */
  "GET /topics/{topic}/grants": {
    path: { topic: string };
    query?: { cursor?: string; limit?: number };
    body?: undefined;
    answer: TopicGrantPage;
  };
  /** Returns a page of the grants of other accounts to the caller's */
  "GET /grants": {
    path?: {};
    query?: { cursor?: string; limit?: number };
    body?: undefined;
    answer: SharedPage;
  };
  /** Makes an access key; its secret is shown once */
  "POST /keys": {
    path?: {};
    query?: {};
    body?: KeyRequest;
    answer: NewKey;
  };
  /** Returns a page of an account's keys, without their secrets */
  "GET /keys": {
    path?: {};
    query?: { account?: string; cursor?: string; limit?: number };
    body?: undefined;
    answer: KeyPage;
  };
  /** Deletes an access key */
  "DELETE /keys/{id}": {
    path: { id: string };
    query?: {};
    body?: undefined;
    answer: null;
  };
  /** Gives an access key a new secret; its former one is good for a while */
  "POST /keys/{id}/rotate": {
    path: { id: string };
    query?: {};
    body?: RotateRequest;
    answer: NewKey;
  };
  /** Returns a page of the account's changes in the last 90 days: which key made which call */
  "GET /audit": {
    path?: {};
    query?: { cursor?: string; from?: string; key_id?: string; limit?: number; resource?: string; to?: string };
    body?: undefined;
    answer: ChangePage;
  };
  /** Returns counts of messages in the last hour, by intervals, or in the last hours */
  "GET /rates": {
    path?: {};
    query?: { hours?: number; queues?: string; receivers?: string; subscriptions?: string; topics?: string };
    body?: undefined;
    answer: RatesOfLastHour;
  };
  /** Returns the account's invoices, with a page of their lines */
  "GET /reports/billing": {
    path?: {};
    query?: { cursor?: string; from?: string; limit?: number; to?: string };
    body?: undefined;
    answer: BillingReport;
  };
  /** Returns the backlog of the account's queues and subscriptions */
  "GET /reports/backlog": {
    path?: {};
    query?: { at?: string };
    body?: undefined;
    answer: BacklogReport;
  };
  /** Returns the service's health and its time */
  "GET /health": {
    path?: {};
    query?: {};
    body?: undefined;
    answer: Health;
  };
  /** Returns the functions' own URLs, and the tables that clients may call themselves */
  "GET /endpoints": {
    path?: {};
    query?: {};
    body?: undefined;
    answer: Endpoints;
  };
  /** Returns the OpenAPI document */
  "GET /openapi.json": {
    path?: {};
    query?: {};
    body?: undefined;
    answer: unknown;
  };
  /** Returns a page to try the API; this service serves its scripts, too */
  "GET /docs/api": {
    path?: {};
    query?: {};
    body?: undefined;
    answer: null;
  };
  /** Returns a file of the page to try the API */
  "GET /docs/api/{asset}": {
    path: { asset: string };
    query?: {};
    body?: undefined;
    answer: null;
  };
}
