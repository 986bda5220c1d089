"use strict";
// What the page does by itself: it speaks two languages, sorts its tables, and shows its figures
// larger. Without this script it is whole, in English.

const LANGUAGES = ["en", "zh-CN"];
const page = document.documentElement;

// A browser may forbid a page of a file to remember anything.
function remembered() {
  try {
    return localStorage.getItem("specmoe-language");
  } catch {
    return null;
  }
}

function remember(language) {
  try {
    localStorage.setItem("specmoe-language", language);
  } catch {
    // Then it lasts until the page is left.
  }
}

function preferred() {
  const chosen = remembered();
  if (LANGUAGES.includes(chosen)) return chosen;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh-CN" : "en";
}

// Words stand in the page in both languages and the style sheet shows those of `lang`; only
// attributes and the title have to be exchanged.
function speak(language) {
  page.lang = language;
  const own = language === "en" ? "en" : "zh";
  for (const image of document.querySelectorAll("img[data-zh]")) image.alt = image.dataset[own];
  const title = document.querySelector("title");
  document.title = title.dataset[own];
}

function makeSortable(table) {
  const body = table.tBodies[0];
  const asRendered = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const following = { none: "ascending", ascending: "descending", descending: "none" };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const order = following[head.getAttribute("aria-sort")];
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", order);
      body.append(...sorted(asRendered, column, order));
    });
  });
}

function sorted(rows, column, order) {
  if (order === "none") return rows;
  const keys = new Map(rows.map((row) => [row, key(row.cells[column])]));
  const sign = order === "ascending" ? 1 : -1;
  return [...rows].sort((one, other) => compare(keys.get(one), keys.get(other), sign));
}

// A number, or the words in the language shown, or null for what was not measured.
function key(cell) {
  if (cell.dataset.key !== undefined) return Number(cell.dataset.key);
  const words = cell.innerText.trim();
  return words === "" || words === "–" ? null : words;
}

function compare(one, other, sign) {
  if (one === null || other === null) return (one === null) - (other === null);
  if (typeof one === "number" && typeof other === "number") return sign * (one - other);
  return sign * String(one).localeCompare(String(other), page.lang, { numeric: true });
}

function enlarge(figure, dialog) {
  dialog.querySelector("h2").replaceChildren(...figure.querySelector("h3").cloneNode(true).childNodes);
  dialog.querySelector(".large").replaceChildren(figure.querySelector("img").cloneNode());
  dialog.showModal();
}

speak(preferred());

document.addEventListener("DOMContentLoaded", () => {
  speak(page.lang);
  const language = document.getElementById("language");
  language.hidden = false;
  language.addEventListener("click", () => {
    speak(page.lang === "en" ? "zh-CN" : "en");
    remember(page.lang);
  });
  document.querySelectorAll("table").forEach(makeSortable);
  const dialog = document.getElementById("larger");
  dialog.querySelector("button").addEventListener("click", () => dialog.close());
  for (const figure of document.querySelectorAll("figure.picture")) {
    const button = figure.querySelector("button");
    button.hidden = false;
    button.addEventListener("click", () => enlarge(figure, dialog));
    figure.querySelector("img").addEventListener("click", () => enlarge(figure, dialog));
  }
});
