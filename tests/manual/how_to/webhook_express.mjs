// Posts of the service, received in Express.
import express from "express";
import { isGenuine } from "./verify.mjs";

const app = express();
const seen = new Set();

// The body as it came: express.json() would change it, and no signature would fit.
app.post("/hook", express.raw({ type: "*/*" }), (request, response) => {
  if (!isGenuine(process.env.WEBHOOK_SECRET, request.headers, request.body)) {
    return response.sendStatus(401);
  }
  const id = request.headers["webhook-id"]; // the same in every retry
  if (!seen.has(id)) console.log("received", JSON.parse(request.body).msgBody);
  seen.add(id);
  response.sendStatus(204);
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
server.on("listening", () => console.log("listening", server.address().port));
