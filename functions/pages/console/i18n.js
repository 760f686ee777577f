// The language of the console: the browser's, or the one that was chosen.

import { EN } from "./texts/en.js";
import { EN_CONSUMERS } from "./texts/en_consumers.js";
import { EN_KEYS } from "./texts/en_keys.js";
import { EN_MESSAGES } from "./texts/en_messages.js";
import { EN_TOPICS } from "./texts/en_topics.js";
import { ZH } from "./texts/zh.js";
import { ZH_CONSUMERS } from "./texts/zh_consumers.js";
import { ZH_KEYS } from "./texts/zh_keys.js";
import { ZH_MESSAGES } from "./texts/zh_messages.js";
import { ZH_TOPICS } from "./texts/zh_topics.js";

const CHOSEN = "cirrusmq-language";
const TEXTS = {
  en: { ...EN, ...EN_CONSUMERS, ...EN_KEYS, ...EN_MESSAGES, ...EN_TOPICS },
  zh: { ...ZH, ...ZH_CONSUMERS, ...ZH_KEYS, ...ZH_MESSAGES, ...ZH_TOPICS },
};

/** The languages by their codes, as they name themselves. */
export const LANGUAGES = { en: "English", zh: "中文" };

let language = localStorage.getItem(CHOSEN) ?? (navigator.language.startsWith("zh") ? "zh" : "en");
if (!(language in TEXTS)) language = "en";
document.documentElement.lang = language;

/** The code of the language in use. */
export function currentLanguage() {
  return language;
}

/** Use a language from the next text on. */
export function choose(code) {
  language = code;
  localStorage.setItem(CHOSEN, code);
  document.documentElement.lang = code;
}

/** A text by its key; `{name}` in it is replaced by the value of that name. */
export function t(key, values = {}) {
  return TEXTS[language][key].replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** A text by a key that the service decides; the service's own word where there is none. */
export function translated(prefix, word) {
  const key = `${prefix}.${word}`;
  return key in TEXTS[language] ? t(key) : word;
}
