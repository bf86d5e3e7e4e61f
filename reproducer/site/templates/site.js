"use strict";
(() => {
  const form = document.getElementById("filters");
  const told = document.getElementById("told");
  const names = ["lock", "measure", "verdict", "signer"];
  const runs = [...document.querySelectorAll("[data-run]")];
  const figures = [...document.querySelectorAll("[data-figure]")];
  const drawn = [...document.querySelectorAll('figure svg g[id*="-run-"]')];
  const chosen = () => Object.fromEntries(names.map((name) => [name, form.elements[name].value]));
  const fits = (element, wanted) =>
    (!wanted.lock || element.dataset.lock === wanted.lock) &&
    (!wanted.verdict || element.dataset.verdict === wanted.verdict) &&
    (!wanted.signer || element.dataset.signer === wanted.signer) &&
    (!wanted.measure || element.dataset.measures.split(" ").includes(wanted.measure));
  const apply = () => {
    const wanted = chosen();
    const shown = new Set();
    for (const each of runs) {
      each.hidden = !fits(each, wanted);
      if (!each.hidden) shown.add(each.dataset.run);
    }
    for (const each of figures) each.hidden = wanted.measure !== "" && each.dataset.figure !== wanted.measure;
    for (const each of drawn) each.classList.toggle("off", !shown.has(/-run-(\d+)-/.exec(each.id)[1]));
    told.textContent = `${shown.size} of ${form.dataset.runs} runs shown; in figures the others are faint`;
    const query = names.filter((name) => wanted[name]).map((name) => `${name}=${wanted[name]}`).join("&");
    if (query || location.hash.includes("=")) location.replace(`#${query || "runs"}`);
  };
  const asked = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  for (const name of names) {
    const known = [...form.elements[name].options].some((each) => each.value === asked.get(name));
    if (known) form.elements[name].value = asked.get(name);
  }
  form.addEventListener("change", apply);
  document.getElementById("all").addEventListener("click", () => {
    for (const name of names) form.elements[name].value = "";
    apply();
  });
  form.hidden = false;
  apply();
})();
