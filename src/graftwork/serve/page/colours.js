// Runs before the page is drawn, so that a chosen colour scheme never flashes.
"use strict";
{
  const KEY = "graftwork.colours";
  const root = document.documentElement;
  let chosen = "";
  try {
    chosen = localStorage.getItem(KEY) ?? "";
  } catch { /* storage is switched off: the system's colours */ }
  const apply = () => {
    if (chosen === "light" || chosen === "dark") root.dataset.colours = chosen;
    else delete root.dataset.colours;
  };
  apply();
  addEventListener("DOMContentLoaded", () => {
    const select = document.getElementById("colours");
    select.value = root.dataset.colours ?? "";
    select.addEventListener("change", () => {
      chosen = select.value;
      apply();
      try {
        localStorage.setItem(KEY, chosen);
      } catch { /* kept for this page only */ }
    });
  });
}
