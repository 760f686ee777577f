// Sending to a queue: one message from a form, or many from a file.

import { post, queuePath } from "../api.js";
import { inCalls, readMessages } from "../batch_file.js";
import { h, replace } from "../dom.js";
import { field } from "../forms.js";
import { number } from "../format.js";
import { t } from "../i18n.js";
import { messageFields } from "../message_form.js";
import { act, outcome, section } from "../ui.js";

export async function sendTab(queue) {
  return {
    element: h(
      "div",
      {},
      section(t("send.one"), oneMessage(queue)),
      section(t("send.file"), fromFile(queue)),
    ),
  };
}

function oneMessage(queue) {
  const place = outcome();
  const fields = messageFields({ grouped: queue.ordered, priorities: queue.priorities });
  const submit = h("button", { type: "submit", class: "main" }, t("send"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(submit, place, async () => {
      const answer = await post(queuePath(queue.name, "/messages"), { messages: [fields.read()] });
      const { id } = answer.messages[0];
      place.say(
        h(
          "p",
          { class: "good" },
          t("send.sent"),
          " ",
          h(
            "a",
            { href: `#/queues/${encodeURIComponent(queue.name)}/messages?id=${id}` },
            h("code", {}, id),
          ),
        ),
      );
    });
  };
  return h("form", { onsubmit }, fields.element, place.element, submit);
}

function fromFile(queue) {
  const place = outcome();
  const bar = h("progress", { hidden: true, "aria-label": t("send.file") });
  const file = field(t("send.file.choose"), {
    type: "file",
    accept: ".txt,.json,.jsonl,.ndjson,text/plain,application/json",
    required: true,
  });
  const submit = h("button", { type: "submit" }, t("send.file"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(submit, place, async () => {
      const messages = readMessages(await file.input.files[0].text());
      const groups = inCalls(messages);
      bar.max = Math.max(1, messages.length);
      bar.value = 0;
      bar.hidden = false;
      const refused = [];
      for (const group of groups) {
        const answer = await post(queuePath(queue.name, "/messages"), {
          messages: group,
          atomic: false,
        });
        refused.push(
          ...answer.messages.filter((entry) => entry.error).map((entry) => entry.error.detail),
        );
        bar.value += group.length;
      }
      bar.hidden = true;
      place.say(told(messages.length - refused.length, refused));
    });
  };
  return h(
    "form",
    { onsubmit },
    h("p", { class: "quiet" }, t("send.file.text")),
    file.row,
    bar,
    place.element,
    submit,
  );
}

function told(sent, refused) {
  const kinds = [...new Set(refused)];
  const element = h("div");
  return replace(
    element,
    h("p", { class: "good" }, t("send.file.sent", { sent: number(sent) })),
    refused.length > 0 &&
      h(
        "p",
        { class: "bad" },
        t("send.file.refused", { refused: number(refused.length) }),
        " ",
        kinds.join(" "),
      ),
  );
}
