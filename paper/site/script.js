"use strict";
// Switches between two languages and sorts tables. Without this script the page is
// complete, in English.

const LANGUAGES = ["en", "zh-CN"];
const page = document.documentElement;

// Some browsers give pages opened from a file no storage.
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
    // Then the choice lasts until the reader leaves the page.
  }
}

function preferred() {
  const chosen = new URLSearchParams(location.search).get("lang") ?? remembered();
  if (LANGUAGES.includes(chosen)) return chosen;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh-CN" : "en";
}

// The page has its text in both languages, and the style sheet shows that of `lang`. Only attributes,
// options and the title need a script.
function speak(language) {
  page.lang = language;
  const own = language === "en" ? "en" : "zh";
  for (const image of document.querySelectorAll("img[data-zh]")) image.alt = image.dataset[own];
  for (const option of document.querySelectorAll("option[data-zh]")) option.textContent = option.dataset[own];
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

// A number, or the text in the language shown, or null if nothing was measured.
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
  // On paper nothing unfolds.
  const folds = [...document.querySelectorAll("details:not([open])")];
  addEventListener("beforeprint", () => folds.forEach((fold) => (fold.open = true)));
});
