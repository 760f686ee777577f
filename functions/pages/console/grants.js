// Grants on a queue or a topic: another account's permissions.

import { call, listAll } from "./api.js";
import { h, replace } from "./dom.js";
import { field } from "./forms.js";
import { t } from "./i18n.js";
import { fieldsOf } from "./schema.js";
import { act, button, empty, outcome, section, table } from "./ui.js";

const MOST = 1_000;
const WIDEST = ["full", "admin"];

/** The permissions with the widest behind the others: none of these is a form's preset. */
function gentleFirst(choices) {
  return [...choices].sort((one, other) => WIDEST.indexOf(one) - WIDEST.indexOf(other));
}

/** `path`: of the queue or topic; `shape`: the body of the grant, which lists the permissions. */
export async function grantsPanel(path, shape) {
  const place = outcome();
  const list = h("div");
  const of = (account) => `${path}/grants/${encodeURIComponent(account)}`;
  const draw = async () => {
    const grants = await listAll(`${path}/grants`, "grants", MOST);
    replace(
      list,
      grants.length
        ? table(
            t("grants"),
            [
              { head: t("account"), cell: (grant) => grant.account },
              { head: t("permission"), cell: (grant) => grant.permission },
              {
                head: t("actions"),
                cell: (grant) => {
                  const trigger = button(
                    t("grant.revoke"),
                    () =>
                      act(trigger, place, async () => {
                        await call("DELETE", of(grant.account));
                        await draw();
                      }),
                    "small danger",
                  );
                  return trigger;
                },
              },
            ],
            grants,
          )
        : empty(t("grants.none")),
    );
  };
  const { permission } = await fieldsOf(shape);
  const account = field(t("account"), { required: true, maxlength: 64, spellcheck: "false" });
  const choice = field(
    t("permission"),
    {},
    "select",
    gentleFirst(permission.choices).map((each) => h("option", { value: each }, each)),
  );
  const submit = h("button", { type: "submit" }, t("grant.give"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(submit, place, async () => {
      await call("PUT", of(account.input.value.trim()), { permission: choice.input.value });
      place.good(t("done"));
      await draw();
    });
  };
  await draw();
  return section(
    t("grants"),
    list,
    h("form", { class: "inline", onsubmit }, account.row, choice.row, submit),
    place.element,
  );
}
