// A message on the page: its facts and its body, which is text whatever it looks like.

import { h, replace } from "./dom.js";
import { bytes, number, time } from "./format.js";
import { t } from "./i18n.js";
import { badge, button, facts } from "./ui.js";

const SHOWN = 2_000;

/** A card of a message; `actions`: elements of it, such as a checkbox. */
export function messageCard(message, ...actions) {
  const dead = message.dead_letter;
  return h(
    "article",
    { class: "message", "aria-label": message.id },
    h(
      "div",
      { class: "message-head" },
      h("code", {}, message.id),
      message.tags?.map((tag) => badge(tag)),
      actions,
    ),
    facts(
      [
        // A dead letter is sent anew when it dies: its card has that time as its death.
        !dead && [t("sent_at"), time(message.sent_at)],
        message.receive_count !== undefined && [t("receive_count"), number(message.receive_count)],
        message.visible_at && [t("visible_at"), time(message.visible_at)],
        message.expires_at && [t("expires_at"), time(message.expires_at)],
        message.reply_by && [t("reply_by"), time(message.reply_by)],
        message.group && [t("group"), message.group],
        message.priority && [t("priority"), number(message.priority)],
        message.sender && [
          t("sender"),
          [message.sender, message.sender_key].filter(Boolean).join(" / "),
        ],
        message.routing_key && [t("routing_key"), message.routing_key],
        dead && [
          t("dead.from"),
          [dead.source_queue, dead.receiver ?? dead.subscription].filter(Boolean).join(" / "),
        ],
        dead && [t("dead.reason"), badge(dead.reason, "bad")],
        dead && [t("dead.at"), time(dead.dead_at)],
        ...Object.entries(message.attributes ?? {}).map(([name, value]) => [
          name,
          value.base64 ?? value,
        ]),
      ].filter(Boolean),
    ),
    bodyOf(message),
  );
}

/** The body, if it was answered: its first 2,000 characters, and all of it on demand. */
function bodyOf(message) {
  const binary = message.body === undefined;
  const text = binary ? message.body_base64 : message.body;
  if (text === undefined) return null;
  const shown = h(
    "pre",
    { class: "body", tabindex: "0", role: "region", "aria-label": t("body") },
    text.slice(0, SHOWN),
  );
  if (text.length <= SHOWN) return [binary && h("p", { class: "quiet" }, t("body.binary")), shown];
  const whole = button(
    t("body.all", { size: bytes(new TextEncoder().encode(text).length) }),
    () => {
      replace(shown, text);
      whole.remove();
    },
    "small",
  );
  return [binary && h("p", { class: "quiet" }, t("body.binary")), shown, whole];
}
