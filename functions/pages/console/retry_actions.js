// The ladder of a subscription, and what can be done while it fails.

import { post, subscriptionPath } from "./api.js";
import { ladder } from "./charts.js";
import { h } from "./dom.js";
import { countedAll, duration, time } from "./format.js";
import { t } from "./i18n.js";
import { act, button, facts } from "./ui.js";

/** The waits of a subscription's retries, in seconds, as the service says them; the last repeats. */
export const waitsOf = (subscription) => subscription.retry_in_force?.waits ?? [];

/** The last error, the next attempt and the ladder. */
export function retryFigures(subscription) {
  const waits = waitsOf(subscription);
  const policy = subscription.retry_in_force?.policy;
  return h(
    "div",
    {},
    facts(
      [
        policy && [t("retry.policy"), policy],
        waits.length && [
          t("retry.waits"),
          `${waits.slice(0, 10).map(duration).join(", ")}${waits.length > 10 ? " …" : ""}`,
        ],
        subscription.next_attempt_at && [t("next_attempt"), time(subscription.next_attempt_at)],
        subscription.last_error && [
          t("last_error"),
          h("span", { class: "bad" }, subscription.last_error),
        ],
        subscription.counts && [t("backlog"), countedAll(subscription.counts)],
      ].filter(Boolean),
    ),
    waits.length > 0 && ladder(waits),
  );
}

/** Whether messages wait in a subscription: a URL or a group, not a queue's and not a broadcast. */
export const holdsMessages = (subscription) =>
  subscription.protocol !== "queue" && subscription.mode !== "broadcasting";

/** Retry now, pause or resume; `changed` is called when one is done. */
export function retryButtons(subscription, place, changed) {
  const path = (work) => subscriptionPath(subscription.topic, subscription.name, `/${work}`);
  const make = (work, kind = "") => {
    const trigger = button(
      t(`retry.${work}`),
      () =>
        act(trigger, place, async () => {
          await post(path(work));
          place.good(t(`retry.${work}.done`, { name: subscription.name }));
          await changed();
        }),
      kind,
    );
    return trigger;
  };
  if (!holdsMessages(subscription)) return null;
  return h(
    "div",
    { class: "buttons" },
    subscription.protocol === "http" && subscription.state === "retrying" && make("retry", "main"),
    subscription.paused ? make("resume") : make("pause"),
  );
}
