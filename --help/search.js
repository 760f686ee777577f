// The search, without a server: it reads search.json once, when it is first used.

import { look, wordsOf } from "./look.js";

const SHOWN = 12;
const AROUND = 60;

const place = document.getElementById("search");
const asked = document.getElementById("asked");
const found = document.getElementById("found");
const told = document.getElementById("told");
let entries = null;

function around(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - AROUND);
  return (at > 0 ? "… " : "") + text.slice(at, at + 2.5 * AROUND) + "…";
}

function item([page, title, heading, anchor, text], word) {
  const link = document.createElement("a");
  link.href = `${page}.html#${anchor}`;
  const name = document.createElement("b");
  name.textContent = heading === title ? title : `${title}: ${heading}`;
  const part = document.createElement("span");
  part.textContent = around(text, word);
  link.append(name, part);
  const line = document.createElement("li");
  line.append(link);
  return line;
}

async function show() {
  entries ??= await (await fetch("search.json")).json();
  const results = look(entries, asked.value);
  const [word] = wordsOf(asked.value);
  found.replaceChildren(...results.slice(0, SHOWN).map((entry) => item(entry, word)));
  told.textContent = word === undefined ? "" : `${results.length} sections found`;
}

function close() {
  found.replaceChildren();
  told.textContent = "";
}

if (place) {
  place.hidden = false;
  asked.addEventListener("input", show);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      asked.focus();
    } else if (event.key === "Escape") close();
  });
  document.addEventListener("click", (event) => {
    if (!place.contains(event.target)) close();
  });
}
