// Reads a page's figures every few seconds while somebody can see them, and says what that takes.

import { callsMade, isOfCall } from "./api.js";
import { h, replace } from "./dom.js";
import { t } from "./i18n.js";

export class Live {
  #timer = 0;
  #round = 0;
  #refresh = null;
  #seconds = 0;
  #paused = false;
  #told = "";

  /** `failed` gets what a refresh threw; null after one that was answered. */
  constructor(failed) {
    this.failed = failed;
    this.line = h("span", { class: "quiet" });
    this.button = h("button", { type: "button", class: "small", onclick: () => this.#toggle() });
    this.element = h("div", { class: "live", hidden: true }, this.line, this.button);
    document.addEventListener("visibilitychange", () => this.#turn());
  }

  /** Read now and every so many seconds; 0: once. Ends what was read before. */
  async start(refresh, seconds) {
    this.stop();
    this.#refresh = refresh;
    this.#seconds = seconds;
    this.#told = t("live.reading");
    this.element.hidden = !refresh;
    if (refresh) await this.now();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#round += 1;
    this.#refresh = null;
  }

  /** Read once more at once, after something was changed. */
  async now() {
    if (!this.#refresh) return;
    clearTimeout(this.#timer);
    this.#round += 1;
    const round = this.#round;
    const before = callsMade();
    this.#show();
    try {
      await this.#refresh();
      if (round !== this.#round) return;
      this.#told = this.#said(callsMade() - before);
      this.failed(null);
    } catch (error) {
      if (!isOfCall(error)) throw error;
      if (round !== this.#round) return;
      this.failed(error);
    }
    this.#show();
    this.#plan();
  }

  #said(calls) {
    const at = new Date().toLocaleTimeString(undefined, { hour12: false });
    const key = this.#seconds ? "live.updated" : "live.read_once";
    return t(key, { at, calls, seconds: this.#seconds });
  }

  #plan() {
    if (this.#seconds && !this.#paused && !document.hidden) {
      this.#timer = setTimeout(() => this.now(), this.#seconds * 1000);
    }
  }

  #toggle() {
    this.#paused = this.#seconds ? !this.#paused : false;
    if (this.#paused) clearTimeout(this.#timer);
    else this.now();
    this.#show();
  }

  #turn() {
    clearTimeout(this.#timer);
    if (!document.hidden && !this.#paused && this.#seconds) this.now();
  }

  #show() {
    replace(this.line, this.#told);
    const key = this.#seconds ? (this.#paused ? "live.resume" : "live.pause") : "live.again";
    replace(this.button, t(key));
  }
}
