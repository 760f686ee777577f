// Access keys of the account, or of one that an admin names; the audit: which of them changed what.

import { Refused, call, keyId, listAll, post } from "../api.js";
import { auditSection } from "../audit.js";
import { h, newId, replace } from "../dom.js";
import { attributesForm, field } from "../forms.js";
import { plain, time } from "../format.js";
import { t } from "../i18n.js";
import { fieldsOf } from "../schema.js";
import {
  act,
  badge,
  button,
  confirm,
  empty,
  facts,
  outcome,
  section,
  showDialog,
  table,
} from "../ui.js";

const MOST = 1_000;

export async function keysPage({ query }) {
  const own = await listAll("/keys", "keys", MOST);
  const mine = own.find((key) => key.access_key_id === keyId());
  const named = query.get("account") || mine?.account;
  const other = named === mine?.account ? undefined : named;
  const chosen = mine?.admin ? accountField(query.get("account") ?? "", mine.account) : null;
  const audit = auditSection();
  const [keys] = await Promise.all([
    other ? keysSection(other, chosen) : keysSection(undefined, chosen, own),
    audit.read(),
  ]);
  const element = h("div", {}, keys, audit.element);
  return { title: t("nav.keys"), element };
}

/** The keys of an account, the own one if it is undefined; `held`: its keys, if they are known. */
async function keysSection(account, chosen, held) {
  const place = outcome();
  const list = h("div");
  const draw = async (known) => {
    const keys = known ?? (await listAll("/keys", "keys", MOST, { account }));
    const drawn = keys.length ? table(t("nav.keys"), columns(place, draw), keys) : null;
    replace(list, drawn ?? empty(t("keys.none")));
  };
  const head = account ? t("keys.of", { account }) : t("keys.all");
  try {
    await draw(held);
  } catch (error) {
    // The account is not one, or not for this key: all else of the page is as ever.
    if (!(error instanceof Refused && [400, 403].includes(error.status))) throw error;
    (chosen ?? place).bad(error);
    return section(head, chosen?.element, place.element);
  }
  // The account is the page's: the form does not ask for it once more.
  const { account: _, ...fields } = await fieldsOf("KeyRequest");
  const form = attributesForm(fields, {}, t("keys.create"), async (given, told) => {
    const made = await post("/keys", { ...given, account });
    told.good(t("done"));
    showSecret(made);
    await draw();
  });
  const making = account ? t("keys.new_of", { account }) : t("keys.new");
  return section(
    head,
    chosen?.element,
    list,
    place.element,
    h("details", {}, h("summary", {}, making), form),
  );
}

/** The field of the account whose keys are shown; the choice is in the address. */
function accountField(value, own) {
  const hint = newId();
  const { input, row } = field(t("account"), {
    value,
    maxlength: 64,
    spellcheck: "false",
    autocomplete: "off",
    "aria-describedby": hint,
  });
  const place = outcome();
  const onsubmit = (event) => {
    event.preventDefault();
    const account = input.value.trim();
    location.hash = account ? `/keys?${new URLSearchParams({ account })}` : "/keys";
  };
  const element = h(
    "form",
    { onsubmit },
    h("div", { class: "inline" }, row, h("button", { type: "submit" }, t("audit.show"))),
    h(
      "div",
      { id: hint },
      h("p", { class: "hint" }, t("keys.account", { account: own })),
      place.element,
    ),
  );
  const bad = (error) => {
    input.setAttribute("aria-invalid", "true");
    place.bad(error);
  };
  return { element, bad };
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
    facts([[t("account"), key.account]]),
    h("pre", {}, `${key.access_key_id}\n${key.secret}`),
  );
}
