// Access keys of the account, and the audit: which of them changed what.

import { call, keyId, listAll, post } from "../api.js";
import { auditSection } from "../audit.js";
import { h, replace } from "../dom.js";
import { attributesForm } from "../forms.js";
import { plain, time } from "../format.js";
import { t } from "../i18n.js";
import { fieldsOf } from "../schema.js";
import { act, badge, button, confirm, outcome, section, showDialog, table } from "../ui.js";

const MOST = 1_000;

export async function keysPage() {
  const place = outcome();
  const list = h("div");
  const draw = async () => {
    const keys = await listAll("/keys", "keys", MOST);
    replace(list, table(t("nav.keys"), columns(place, draw), keys));
  };
  const form = attributesForm(
    await fieldsOf("KeyRequest"),
    {},
    t("keys.create"),
    async (given, told) => {
      const made = await post("/keys", given);
      told.good(t("done"));
      showSecret(made);
      await draw();
    },
  );
  const audit = auditSection();
  await Promise.all([draw(), audit.read()]);
  const element = h(
    "div",
    {},
    section(
      t("keys.all"),
      list,
      place.element,
      h("details", {}, h("summary", {}, t("keys.new")), form),
    ),
    audit.element,
  );
  return { title: t("nav.keys"), element };
}

function columns(place, draw) {
  return [
    {
      head: t("key.id"),
      cell: (key) => [
        h("code", {}, key.access_key_id),
        " ",
        key.access_key_id === keyId() && badge(t("keys.this"), "good"),
      ],
    },
    { head: t("description"), cell: (key) => key.description ?? "" },
    { head: t("keys.rights"), cell: (key) => rights(key) },
    {
      head: t("keys.last_used"),
      cell: (key) => (key.last_used_at ? key.last_used_at.slice(0, 10) : t("keys.never")),
    },
    { head: t("keys.expires"), cell: (key) => time(key.expires_at) },
    {
      head: t("actions"),
      cell: (key) =>
        h("div", { class: "buttons" }, rotating(key, place, draw), removing(key, place, draw)),
    },
  ];
}

function rights(key) {
  const flags = ["admin", "manages_keys", "signing"].filter((flag) => key[flag]);
  return [flags.map((flag) => badge(flag)), key.scope ? h("code", {}, plain(key.scope)) : ""];
}

function rotating(key, place, draw) {
  const text = t("keys.rotate.text", { id: key.access_key_id });
  const asked = { head: t("keys.rotate"), text, label: t("keys.rotate") };
  return asking(key, place, asked, "small", async (path) => {
    showSecret(await post(`${path}/rotate`));
    await draw();
  });
}

function removing(key, place, draw) {
  const text = t("keys.delete.text", { id: key.access_key_id });
  const asked = { head: t("keys.delete"), text, label: t("delete") };
  return asking(key, place, asked, "small danger", async (path) => {
    await call("DELETE", path);
    await draw();
  });
}

// A button whose work with a key is done once the user has confirmed it.
function asking(key, place, asked, kind, work) {
  const trigger = button(
    asked.label,
    () =>
      act(trigger, place, async () => {
        if (await confirm(asked.head, asked.text, asked.label))
          await work(`/keys/${encodeURIComponent(key.access_key_id)}`);
      }),
    kind,
  );
  return trigger;
}

function showSecret(key) {
  showDialog(
    t("keys.secret"),
    h("p", {}, t("keys.secret.text")),
    h("pre", {}, `${key.access_key_id}\n${key.secret}`),
  );
}
