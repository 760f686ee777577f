// Long work, followed until it ends.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { number } from "./format.js";
import { t, translated } from "./i18n.js";

const POLL_MS = 1_000;

/** Show in `place` how far an operation is until it ends; answers its last state. */
export async function follow(id, about, place) {
  const bar = h("progress", { "aria-label": about });
  const text = h("p", { role: "status" });
  replace(place, h("p", {}, about), bar, text);
  for (;;) {
    const operation = await get(`/operations/${encodeURIComponent(id)}`);
    replace(text, told(operation));
    if (operation.state !== "running") {
      bar.remove();
      text.className = operation.state === "succeeded" ? "good" : "bad";
      return operation;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    // Whoever has left the page looks at it under Operations.
    if (!place.isConnected) return operation;
  }
}

/** A sentence on an operation. */
function told(operation) {
  const state = translated("operation", operation.state);
  return [t("operation.told", { state, done: number(operation.done) }), operation.detail]
    .filter(Boolean)
    .join(" ");
}
