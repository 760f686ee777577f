// What a URL answered to posts that failed, where its subscription keeps that.

import { h } from "./dom.js";
import { duration, time } from "./format.js";
import { t } from "./i18n.js";
import { section } from "./ui.js";

/** The newest answer of each status, or how to have them kept; null where nothing is posted. */
export function failedAnswers(held) {
  if (held.protocol !== "http") return null;
  const kept = held.failed_answers;
  if (!kept?.length) return h("p", { class: "quiet" }, t(kept ? "answers.none" : "answers.off"));
  return section(t("answers.title"), h("p", { class: "quiet" }, t("answers.text")), kept.map(one));
}

function one(answer, position) {
  const headers = answer.headers.map(({ name, value }) => `${name}: ${value}`).join("\n");
  const what = [answer.body_encoding, answer.body_cut && t("answers.cut")].filter(Boolean);
  return h(
    "details",
    { open: position === 0 },
    h("summary", {}, h("span", { class: "bad" }, answer.error), " ", time(answer.at)),
    h("p", {}, t("answers.of", { id: answer.message_id, took: duration(answer.duration_ms / 1000) })),
    headers && h("pre", {}, headers),
    what.length > 0 && h("p", { class: "quiet" }, what.join(", ")),
    answer.body ? h("pre", {}, answer.body) : h("p", { class: "quiet" }, t("answers.empty")),
  );
}
