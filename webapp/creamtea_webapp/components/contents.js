// Links to headings of the page by their ids. Titles are set by textContent only.
//
// A page arrives piece by piece, and what arrives later moves what is there: the section that the address names
// is brought into view again until it stays, or until the reader does anything.
const PATIENCE = 20000; // milliseconds
const BETWEEN = 200;

let asked = false; // the address is followed once per load of the page, not once per run of its script

export default function render({ parentElement, data }) {
  const list = parentElement.querySelector("ul");
  list.replaceChildren(
    ...data.entries.map((entry) => {
      const item = document.createElement("li");
      item.className = `level${entry.level}`;
      const link = document.createElement("a");
      link.href = `#${entry.address}`;
      link.textContent = entry.title;
      link.onclick = () => follow(entry.address);
      item.append(link);
      return item;
    }),
  );
  if (asked) return;
  asked = true;
  if (location.hash) follow(decodeURIComponent(location.hash.slice(1)));
}

function follow(address) {
  const end = performance.now() + PATIENCE;
  let still = true;
  let last = null;
  const stop = () => {
    still = false;
  };
  for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    addEventListener(kind, stop, { once: true, passive: true });
  }
  const look = () => {
    if (!still || performance.now() > end) return;
    const heading = document.getElementById(address);
    const top = heading?.getBoundingClientRect().top;
    if (heading && top !== last) heading.scrollIntoView({ block: "start" });
    last = heading?.getBoundingClientRect().top ?? null;
    setTimeout(look, BETWEEN);
  };
  setTimeout(look, BETWEEN);
}
