// Signing in: an access key, which stays in this tab.

import { call, signIn, signOut } from "../api.js";
import { h } from "../dom.js";
import { field } from "../forms.js";
import { t } from "../i18n.js";
import { act, outcome } from "../ui.js";

export async function signInPage({ open }) {
  const place = outcome();
  const id = field(t("key.id"), {
    name: "id",
    required: true,
    autocomplete: "username",
    spellcheck: "false",
  });
  const secret = field(t("key.secret"), {
    name: "secret",
    type: "password",
    required: true,
    autocomplete: "current-password",
  });
  const submit = h("button", { type: "submit", class: "main" }, t("sign_in"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(submit, place, async () => {
      signIn(id.input.value.trim(), secret.input.value.trim());
      try {
        // Any key may ask this, whatever its scope.
        await call("GET", "/endpoints");
      } catch (error) {
        signOut();
        throw error;
      }
      open();
    });
  };
  const element = h(
    "div",
    { class: "narrow" },
    h("p", {}, t("sign_in.text")),
    h("form", { onsubmit }, id.row, secret.row, place.element, submit),
    h("p", { class: "quiet" }, t("sign_in.local"), " ", h("code", {}, ".local/connection.json")),
    h("p", { class: "quiet" }, t("sign_in.cloud")),
  );
  return { title: t("sign_in"), element };
}
