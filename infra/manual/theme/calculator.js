// The calculator of the page on costs. Its figures are costs.json, its rules bill.js.

import { bill } from "./bill.js";

const CAPACITY = [
  ["on demand", null, null],
  ["on demand, savings plans", null, "savings plans"],
  ...[0.7, 0.45].flatMap((used) => [
    [`by the hour, ${100 * used} % used`, used, null],
    [`by the hour, ${100 * used} % used, reserved for a year`, used, "reserved 1 year"],
    [`by the hour, ${100 * used} % used, reserved for three`, used, "reserved 3 years"],
  ]),
];

const place = document.getElementById("calculator");
const costs = await (await fetch("costs.json")).json();

const form = document.createElement("form");
const kind = choice("What messages do", costs.cases.map((each) => each.name));
const messages = number("Messages a month", 1_000_000);
const consumers = number("Consumers that wait all month", 1);
const megabytes = number("Megabytes that wait, on average", 0);
const capacity = choice("DynamoDB", CAPACITY.map(([name]) => name));
const way = choice("Calls", ["by the HTTP API", "by direct URLs"]);
const table = document.createElement("table");
const result = document.createElement("div");
result.setAttribute("role", "status");
result.append(table);
form.addEventListener("input", show);
form.addEventListener("submit", (event) => event.preventDefault());
place.replaceChildren(form, result);
show();

function show() {
  const one = costs.cases[kind.selectedIndex];
  const [, used, term] = CAPACITY[capacity.selectedIndex];
  const lines = bill(one, costs.prices, {
    messages: Math.max(0, Number(messages.value)),
    used,
    term,
    gigabytes: Math.max(0, Number(megabytes.value)) / 1e3,
    direct: way.selectedIndex === 1,
  });
  lines["Waiting"] = Math.max(0, Number(consumers.value)) * costs.waiting;
  const whole = Object.values(lines).reduce((sum, each) => sum + each, 0);
  const theirs = (one.theirs * Math.max(0, Number(messages.value))) / 1e6;
  const rows = [...Object.entries(lines), ["In all", whole], [`${one.rival}, without waiting`, theirs]];
  table.replaceChildren(row("th", "a month", "dollars"));
  table.append(...rows.map(([name, amount]) => row("td", name, dollars(amount))));
}

function row(cell, ...texts) {
  const line = document.createElement("tr");
  for (const text of texts) {
    const made = document.createElement(cell);
    made.textContent = text;
    line.append(made);
  }
  line.lastChild.className = "right";
  return line;
}

function dollars(amount) {
  return amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

function field(text, made) {
  const label = document.createElement("label");
  label.append(text, made);
  form.append(label);
  return made;
}

function choice(text, names) {
  const select = document.createElement("select");
  select.append(...names.map((name) => new Option(name)));
  return field(text, select);
}

function number(text, value) {
  const input = document.createElement("input");
  Object.assign(input, { type: "number", min: 0, value });
  return field(text, input);
}
