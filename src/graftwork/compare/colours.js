"use strict";
// The colours that the reader chose, before the page is drawn; browsers may keep nothing of pages opened from a disk.
const KEY = "graftwork.colours";
const kept = (change) => { try { return change(localStorage); } catch { return null; } };
const paint = (scheme) => {
  if (scheme === "light" || scheme === "dark") document.documentElement.dataset.colours = scheme;
  else delete document.documentElement.dataset.colours;
};
paint(kept((store) => store.getItem(KEY)));

function colours() {
  const select = document.getElementById("colours");
  select.value = document.documentElement.dataset.colours ?? "";
  select.addEventListener("change", () => {
    paint(select.value);
    kept((store) => store.setItem(KEY, select.value));
  });
  select.parentElement.hidden = false;
}

addEventListener("DOMContentLoaded", colours);
