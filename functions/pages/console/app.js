// The shell around the pages: signing in, the page that the address names, language, notices.

import { Refused, Unreachable, isOfCall, keyId, signOut } from "./api.js";
import { h, replace } from "./dom.js";
import { LANGUAGES, choose, currentLanguage, t } from "./i18n.js";
import { Live } from "./live.js";
import { forget as forgetSamples } from "./live_rates.js";
import { keysPage } from "./pages/keys.js";
import { operationsPage } from "./pages/operations.js";
import { overviewPage } from "./pages/overview.js";
import { queuePage } from "./pages/queue.js";
import { queuesPage } from "./pages/queues.js";
import { reportsPage } from "./pages/reports.js";
import { retriesPage } from "./pages/retries.js";
import { schedulesPage } from "./pages/schedules.js";
import { signInPage } from "./pages/sign_in.js";
import { subscriptionPage } from "./pages/subscription.js";
import { topicPage } from "./pages/topic.js";
import { topicsPage } from "./pages/topics.js";
import { forget } from "./rates.js";
import { button, refusal } from "./ui.js";

const PAGES = {
  overview: overviewPage,
  queues: (place) => (place.parts[0] ? queuePage(place) : queuesPage(place)),
  topics: (place) => (place.parts[0] ? topicPage(place) : topicsPage(place)),
  subscriptions: subscriptionPage,
  schedules: schedulesPage,
  retries: retriesPage,
  reports: reportsPage,
  keys: keysPage,
  operations: operationsPage,
};
const AGAIN_MS = 5_000;
const LISTED = [
  ...["overview", "queues", "topics", "schedules"],
  ...["retries", "reports", "keys", "operations"],
];

const header = h("header");
const banner = h("div", { class: "banner", role: "alert" });
const main = h("main", { id: "main", tabindex: "-1" });
const live = new Live(tell);
let shown = 0;

function drawHeader(current) {
  const language = h(
    "select",
    {
      id: "language",
      value: currentLanguage(),
      onchange: () => {
        choose(language.value);
        open();
      },
    },
    Object.entries(LANGUAGES).map(([code, name]) => h("option", { value: code, lang: code }, name)),
  );
  replace(
    header,
    h("a", { class: "skip", href: "#main", onclick: skip }, t("skip")),
    h("a", { class: "brand", href: "#/overview" }, "CirrusMQ"),
    keyId() &&
      h(
        "nav",
        { "aria-label": t("nav") },
        LISTED.map((name) =>
          h(
            "a",
            { href: `#/${name}`, "aria-current": name === current && "page" },
            t(`nav.${name}`),
          ),
        ),
      ),
    h(
      "div",
      { class: "aside" },
      h("a", { href: "../docs/index.html" }, t("nav.manual")),
      h("label", { for: "language", class: "hidden" }, t("language")),
      language,
      keyId() && button(t("sign_out"), () => leave(), "small"),
    ),
  );
}

function skip(event) {
  event.preventDefault();
  main.focus();
}

/** End the session; `refused`: why, unless that was wanted. */
function leave(refused = null) {
  signOut();
  forget();
  forgetSamples();
  open(refused);
}

/** An error of a page's reading: 401 ends the session, all else is a notice above the page. */
function tell(error) {
  if (error instanceof Refused && error.status === 401) {
    leave(error);
    return;
  }
  replace(banner, error && refusal(error));
}

async function open(refused = null) {
  shown += 1;
  const mine = shown;
  live.stop();
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = path.split("/").map(decodeURIComponent);
  const page = keyId() ? (PAGES[name] ?? overviewPage) : signInPage;
  drawHeader(name in PAGES ? name : "overview");
  replace(banner, refused && refusal(refused));
  replace(main, h("p", { class: "loading" }, t("loading")));
  try {
    const made = await page({ parts, query: new URLSearchParams(query), live, open });
    if (mine !== shown) return;
    document.title = `${made.title} · CirrusMQ`;
    replace(main, h("div", { class: "head" }, h("h1", {}, made.title), live.element), made.element);
    await live.start(made.refresh ?? null, made.seconds ?? 0);
  } catch (error) {
    if (!isOfCall(error)) throw error;
    if (mine !== shown) return;
    if (error instanceof Unreachable) setTimeout(() => mine === shown && open(), AGAIN_MS);
    replace(
      main,
      h(
        "div",
        { class: "head" },
        h("h1", {}, parts[0] ?? t(`nav.${name in PAGES ? name : "overview"}`)),
      ),
      button(t("again"), () => open()),
    );
    tell(error);
  }
}

replace(document.body, header, banner, main);
window.addEventListener("hashchange", () => open().then(() => main.focus()));
open();
