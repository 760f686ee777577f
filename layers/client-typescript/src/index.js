// The client of CirrusMQ: calls, a consumer with leases, verification of webhooks.

export { Client } from "./client.js";
export { Consumer, DeadLetter, Retry } from "./consumer.js";
export { CirrusMQError } from "./errors.js";
export { isGenuine } from "./webhooks.js";
