// Trying filters on a topic: before a subscription has one.

import { h } from "../dom.js";
import { filterTrial } from "../filter_trial.js";
import { t } from "../i18n.js";
import { button, section, showDialog } from "../ui.js";

export function filterTab(topic) {
  const text = h("p", { class: "quiet" }, t("filter.try.text"));
  return { element: section(t("filter.try"), text, filterTrial(topic)) };
}

/** A button beside a form of attributes that tries the filter in it, and can put another there. */
export function trialButton(topic, form) {
  return button(t("filter.try"), () => {
    const group = form.querySelector('fieldset[name="filter"]');
    const held = group.readValue();
    const use = (filter) => {
      group.writeValue(filter);
      dialog.close();
      group.querySelector("input").focus();
    };
    const text = h("p", { class: "quiet" }, t("filter.try.text"));
    const trial = filterTrial(topic, { given: held ? JSON.stringify(held) : "", use });
    const dialog = showDialog(t("filter.try"), text, trial);
  });
}
