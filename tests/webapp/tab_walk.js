() => {
  const parent = (one) => one.assignedSlot ?? one.parentElement ?? one.getRootNode().host ?? null;
  const deep = (root, found = []) => {
    for (const one of root.querySelectorAll("*")) {
      found.push(one);
      if (one.shadowRoot) deep(one.shadowRoot, found);
    }
    return found;
  };
  const active = () => {
    let one = document.activeElement;
    while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    return one && one !== document.body ? one : null;
  };
  const numbers = new WeakMap();
  let last = 0;
  const number = (one) => {
    if (!numbers.has(one)) numbers.set(one, ++last);
    return numbers.get(one);
  };
  const name = (one) => {
    const text =
      one.getAttribute("aria-label") ||
      // biome-ignore lint/performance/useDomNodeTextContent: what is shown of it
      one.innerText ||
      one.getAttribute("placeholder") ||
      // biome-ignore lint/performance/useDomNodeTextContent: what is shown of it
      one.labels?.[0]?.innerText ||
      one.title ||
      one.id ||
      "";
    return `${one.localName}${one.type ? `[${one.type}]` : ""} ${text.trim().slice(0, 60)}`;
  };
  const hidden = (one) => {
    for (let up = one; up; up = parent(up)) {
      if (up.inert || up.getAttribute("aria-hidden") === "true") return true;
    }
    return (
      !one.checkVisibility({ visibilityProperty: true }) ||
      one.closest("details:not([open]) > :not(summary:first-of-type)") !== null
    );
  };
  const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex], [contenteditable=true]";
  const wanted = () => {
    return deep(document).filter((one) => {
      if (!one.matches(CONTROLS) || one.tabIndex < 0 || one.disabled || hidden(one)) return false;
      if (one.type === "hidden" || (one.type === "file" && one.tabIndex < 0)) return false;
      if (one.type !== "radio" || !one.name) return true;
      const group = deep(one.getRootNode()).filter(
        (other) => other.type === "radio" && other.name === one.name,
      );
      return one === (group.find((other) => other.checked) ?? group[0]);
    });
  };
  const LOOKS = [
    "outlineStyle",
    "outlineWidth",
    "outlineColor",
    "boxShadow",
    "borderTopColor",
    "borderBottomColor",
    "backgroundColor",
    "textDecorationLine",
    "textDecorationThickness",
    "color",
  ];
  const looks = (one) => {
    const near = [one, ...one.querySelectorAll("*")].slice(0, 12);
    if (one.nextElementSibling) near.push(one.nextElementSibling);
    if (one.previousElementSibling) near.push(one.previousElementSibling);
    for (let up = parent(one), steps = 0; up && steps < 5; up = parent(up), steps += 1) near.push(up);
    return near.map((each) => {
      const style = getComputedStyle(each);
      const own = LOOKS.map((what) => style[what]);
      // an outline that is there counts only with a style
      if (style.outlineStyle === "none") own.splice(0, 3, "none", "", "");
      return own.join("|");
    });
  };
  const all = new Map();
  const still = document.createElement("style"); // what fades in would be looked at too early
  still.textContent = "*, ::before, ::after { transition: none !important; }";
  document.head.append(still);
  window.walk = {
    start: () => {
      // Tab goes on from where the focus was, even from an element that is gone
      const first = document.createElement("button");
      document.body.prepend(first);
      first.focus();
      first.remove();
    },
    wanted: () => wanted().map((one) => [number(one), name(one)]),
    here: () => {
      const one = active();
      if (!one) return null;
      const of = number(one);
      const box = one.getBoundingClientRect();
      if (!all.has(of)) all.set(of, [one, looks(one)]);
      return [of, name(one), box.bottom > 0 && box.top < innerHeight && box.right > 0];
    },
    // those that looked the same with the focus as they do without it
    unseen: () =>
      [...all.values()]
        .filter(([one, then]) => one.isConnected && looks(one).join() === then.join())
        .map(([one]) => name(one)),
  };
};
