// The parts that pages are made of: sections, tables, tabs, dialogs, notices.

import { Refused, isOfCall } from "./api.js";
import { h, newId, replace } from "./dom.js";
import { t } from "./i18n.js";

/** A section with a heading. */
export function section(title, ...children) {
  return h("section", {}, h("h2", {}, title), ...children);
}

/** What to do where there is nothing yet: a sentence, and a command to try. */
export function empty(text, command) {
  return h(
    "div",
    { class: "empty" },
    h("p", {}, text),
    command && h("pre", {}, h("code", {}, command)),
  );
}

/** What a listing shows that has nothing: that no name begins so, or what to do first. */
export function nothing(prefix, text, command) {
  return prefix
    ? h("p", { class: "quiet" }, t("search.nothing", { prefix }))
    : empty(text, command);
}

/**
 * A table. `columns`: [{head, cell(row) → text or element, number?, minor?}]; the first names the
 * row, and minor ones are left out on a phone.
 * It scrolls sideways by itself, with the keyboard too.
 */
export function table(caption, columns, rows) {
  const head = columns.map((each) =>
    h("th", { scope: "col", class: classOf(each) }, each.head),
  );
  const lines = rows.map((row) =>
    h(
      "tr",
      {},
      columns.map((each, place) => {
        const attributes = place === 0 ? { scope: "row" } : { class: classOf(each) };
        return h(place === 0 ? "th" : "td", attributes, each.cell(row));
      }),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, lines),
    ),
  );
}

const classOf = ({ number, minor }) =>
  [number && "number", minor && "minor"].filter(Boolean).join(" ") || null;

/** Names and values, one beside the other. `pairs`: [[name, value], …]. */
export function facts(pairs) {
  return h(
    "dl",
    { class: "facts" },
    pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** Large figures side by side. */
export function tiles(pairs) {
  return h(
    "dl",
    { class: "tiles" },
    pairs.map(([name, value, tone]) =>
      h("div", { class: tone }, h("dt", {}, name), h("dd", {}, value)),
    ),
  );
}

/** Links to the parts of a page. `parts`: [[name, text], …]; `current` is one of the names. */
export function tabs(label, base, parts, current) {
  return h(
    "nav",
    { class: "tabs", "aria-label": label },
    parts.map(([name, text]) =>
      h("a", { href: `${base}/${name}`, "aria-current": name === current && "page" }, text),
    ),
  );
}

/** A word for a state; `tone`: good, bad, waiting, or none. */
export function badge(text, tone = "") {
  return h("span", { class: `badge ${tone}` }, text);
}

export function button(text, onclick, kind = "") {
  return h("button", { type: "button", class: kind, onclick }, text);
}

/** A place for what an action answered; what is put in is read aloud. */
export function outcome() {
  const element = h("div", { class: "outcome", role: "status" });
  return {
    element,
    say: (...children) => replace(element, ...children),
    good: (text) => replace(element, h("p", { class: "good" }, text)),
    bad: (error) => replace(element, refusal(error)),
    clear: () => replace(element),
  };
}

/** An error with the service's own sentence. */
export function refusal(error) {
  if (!(error instanceof Refused)) return h("p", { class: "bad" }, t("error.unreachable"));
  const code = error.code ? `${error.code}${error.parameter ? ` (${error.parameter})` : ""}: ` : "";
  return h("p", { class: "bad" }, h("strong", {}, code), h("span", { lang: "en" }, error.message));
}

/** Do something once at a time, with its button off meanwhile; a refusal is shown in `place`. */
export async function act(trigger, place, work) {
  trigger.disabled = true;
  place.clear();
  try {
    return await work();
  } catch (error) {
    if (!isOfCall(error)) throw error;
    place.bad(error);
    return undefined;
  } finally {
    trigger.disabled = false;
  }
}

/** Ask before something that cannot be undone; resolves to whether it was agreed to. */
export function confirm(title, text, agree) {
  return new Promise((resolve) => {
    const id = newId();
    const dialog = h(
      "dialog",
      { "aria-labelledby": id },
      h("h2", { id }, title),
      h("p", {}, text),
      h(
        "div",
        { class: "buttons" },
        button(t("cancel"), () => dialog.close("")),
        button(agree, () => dialog.close("yes"), "danger"),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Show something over the page until it is closed; answers the dialog. */
export function showDialog(title, ...children) {
  const id = newId();
  const dialog = h(
    "dialog",
    { "aria-labelledby": id },
    h("h2", { id }, title),
    ...children,
    h(
      "div",
      { class: "buttons" },
      button(t("close"), () => dialog.close()),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A form that searches a listing by the beginning of names, and links to its pages. */
export function pager(base, query, cursor) {
  const id = newId();
  const field = h("input", {
    id,
    type: "search",
    name: "prefix",
    value: query.get("prefix") ?? "",
    maxlength: 256,
  });
  const search = (event) => {
    event.preventDefault();
    location.hash = `${base}?prefix=${encodeURIComponent(field.value.trim())}`;
  };
  return h(
    "form",
    { class: "pager", role: "search", onsubmit: search },
    h("label", { for: id }, t("search.prefix")),
    field,
    h("button", { type: "submit" }, t("search")),
    pageLinks(base, query, cursor),
  );
}

/** Links to the first page of a listing, and to the next one. */
export function pageLinks(base, query, cursor) {
  const following = new URLSearchParams(query);
  if (cursor) following.set("cursor", cursor);
  const first = new URLSearchParams(query);
  first.delete("cursor");
  return [
    query.get("cursor") && h("a", { href: `#${base}?${first}` }, t("page.first")),
    cursor && h("a", { href: `#${base}?${following}` }, t("page.next")),
  ];
}
