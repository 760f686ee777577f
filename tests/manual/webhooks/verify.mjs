// Verifies a post of the service, as the manual shows it.
import { createHmac, timingSafeEqual } from "node:crypto";

/** Whether the service posted this; `body` is the Buffer as it came. */
export function isGenuine(secret, headers, body) {
  const sent = headers["webhook-timestamp"];
  if (!/^\d+$/.test(sent) || Math.abs(Date.now() / 1000 - Number(sent)) > 300) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${sent}.`), body]);
  const expected = Buffer.from("v1," + createHmac("sha256", key).update(signed).digest("base64"));
  return (headers["webhook-signature"] ?? "").split(" ").some((given) => {
    const each = Buffer.from(given);
    return each.length === expected.length && timingSafeEqual(each, expected);
  });
}

// Run by a test: a line of JSON for each post; prints whether it is genuine.
if (process.argv[1] === import.meta.filename) {
  for await (const chunk of process.stdin) {
    for (const line of chunk.toString().split("\n").filter(Boolean)) {
      const { secret, headers, body } = JSON.parse(line);
      console.log(isGenuine(secret, headers, Buffer.from(body, "base64")));
    }
  }
}
