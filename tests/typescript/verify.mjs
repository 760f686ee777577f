// Reads a line of JSON for each post; prints whether it is genuine.
import { isGenuine } from "cirrusmq-client";

for await (const chunk of process.stdin) {
  for (const line of chunk.toString().split("\n").filter(Boolean)) {
    const { secret, headers, body } = JSON.parse(line);
    console.log(await isGenuine(secret, new Headers(headers), Buffer.from(body, "base64")));
  }
}
