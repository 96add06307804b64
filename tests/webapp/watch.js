(late) => {
  const [RERUN, NEW_SESSION, FINISHED, EARLY] = [11, 4, 6, 2];
  const fields = (data) => {
    const bytes = new Uint8Array(data);
    const found = new Map();
    let at = 0;
    const number = () => {
      let [value, scale] = [0, 1];
      for (;;) {
        const byte = bytes[at++];
        value += (byte & 127) * scale;
        if (byte < 128) return value;
        scale *= 128;
      }
    };
    while (at < bytes.length) {
      const tag = number();
      const size = { 0: 0, 1: 8, 2: null, 5: 4 }[tag & 7];
      const value = size === 0 || size === null ? number() : 0;
      found.set(tag >>> 3, value);
      at += size ?? value;
    }
    return found;
  };
  // A run that had begun before something was asked for does not answer it.
  const state = { runs: "answered" };
  const heard = (data) => {
    const message = fields(data);
    if (message.has(NEW_SESSION) && state.runs === "asked") state.runs = "begun";
    if (message.has(FINISHED) && state.runs === "begun")
      state.runs = message.get(FINISHED) === EARLY ? "asked" : "answered";
  };
  window.WebSocket = class extends WebSocket {
    constructor(...where) {
      super(...where);
      state.runs = "answered"; // what was asked for over one that is gone nobody hears
      const seen = new WeakSet();
      this.addEventListener("message", (event) => {
        if (late === 0) return heard(event.data);
        if (seen.has(event)) return;
        event.stopImmediatePropagation();
        setTimeout(() => {
          const again = new MessageEvent("message", { data: event.data, origin: event.origin });
          seen.add(again);
          heard(event.data);
          this.dispatchEvent(again);
        }, late);
      });
    }
    send(data) {
      if (this.readyState === WebSocket.OPEN && fields(data).has(RERUN)) state.runs = "asked";
      if (late === 0) super.send(data);
      else setTimeout(() => super.send(data), late);
    }
  };
  // inside open shadow roots, too, but for the parts of drawings
  const deep = (root) =>
    [...root.querySelectorAll(":not(svg *)")].flatMap((one) =>
      one.shadowRoot ? [one, ...deep(one.shadowRoot)] : [one],
    );
  const moves = () =>
    document
      .getAnimations()
      .some((one) => one.playState === "running" && one.effect.getComputedTiming().endTime !== Infinity);
  const loading = '[data-stale="true"], [data-testid="stSkeleton"], [data-testid="stFileChipIconSpinner"]';
  const why = () => {
    const app = document.querySelector('[data-testid="stApp"]');
    if (app?.dataset.testScriptState !== "notRunning") return "the script has not ended";
    if (state.runs !== "answered") return `a run is ${state.runs}`;
    if (document.querySelector(loading) !== null) return "something old is left, or something is loaded";
    if (document.fonts.status !== "loaded") return "fonts are loaded";
    return moves() ? "something is animated" : "";
  };
  let [asker, boxes, frames] = [0, 0, 0]; // boxes: a hash, since a page may have thousands
  window.watched = {
    why: () => why() || "something moves",
    // Called once a frame: whether all is where it was two frames before, since `number` first asked.
    atRest: (number) => {
      const all = why() === "" ? deep(document.body) : [];
      const pictures = all.filter((one) => one.localName === "img" && one.loading !== "lazy");
      if (number !== asker || all.length === 0 || pictures.some((one) => !one.complete)) {
        [asker, boxes, frames] = [number, 0, 0];
        return false;
      }
      let now = all.length;
      for (const one of all) {
        const { x, y, width, height } = one.getBoundingClientRect();
        for (const side of [x, y, width, height]) now = (now * 31 + side * 64) % 4294967291;
      }
      frames = now === boxes ? frames + 1 : 0;
      boxes = now;
      return frames >= 2;
    },
  };
};
