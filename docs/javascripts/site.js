// Names and keyboard access that the theme's parts lack. The theme adds some of them late and anew.
const repair = () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    table.tabIndex = 0;
  }
  document.querySelectorAll(".md-code__nav").forEach((nav, index) => {
    nav.setAttribute("aria-label", `Block of code ${index + 1}`);
  });
  for (const nav of document.querySelectorAll(".md-nav .md-nav:not([role])")) {
    for (const name of ["aria-expanded", "aria-label", "aria-labelledby"]) {
      nav.removeAttribute(name);
    }
    nav.setAttribute("role", "none");
  }
};
new MutationObserver(repair).observe(document.body, { childList: true, subtree: true });
repair();
