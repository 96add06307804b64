// Files of the source and of outputs. Nothing plays by itself; browsers' own controls are used, which keys reach. While
// something plays the rater is at work, without a movement (`plays`).

const NAMES = { image: "Image", audio: "Sound", video: "Video" };
const LOST = "This file could not be loaded. Reload the page; if that does not help, tell the organiser.";

// The elements that show the files of the source or, with a `letter`, of an output ("" if it is the only one).
function shownFiles(files, plays, letter = null) {
  const whose = letter === null ? "the source" : letter === "" ? "the translation" : `translation ${letter}`;
  return files.map((file, i) => {
    const described = letter ? `Translation ${letter}: ${file.description}` : file.description;
    return shownMedia(file, file.description ? described : `${NAMES[file.kind]} ${i + 1} of ${whose}`, plays);
  });
}

function shownMedia({ kind, address, description, captions }, name, plays) {
  const figure = newElement("figure", { className: kind });
  const lost = () => {
    figure.replaceChildren(newElement("p", { className: "lost", textContent: `${name}: ${LOST}` }));
  };
  figure.append(
    ...(kind === "image" ? [image(address, name, lost)] : player(kind, address, name, lost, plays, captions)),
  );
  if (description && kind !== "image") {
    figure.append(newElement("figcaption", { dir: "auto", textContent: description }));
  }
  return figure;
}

// An image, with a link to its full size: a phone's screen is narrow.
function image(address, name, lost) {
  const opens = { target: "_blank", rel: "noopener", title: "Open in full size" };
  const link = newElement("a", { href: address, ...opens });
  link.append(newElement("img", { alt: name, onerror: lost, src: address }));
  return link;
}

function player(kind, address, name, lost, plays, captions) {
  const element = newElement(kind, {
    controls: true,
    preload: "metadata",
    onerror: lost,
    ontimeupdate: plays,
    ariaLabel: name,
    src: address,
  });
  if (!captions) return [element];
  // Browsers show captions in the picture of a video, where its menu switches them off; those of a sound nowhere.
  const track = newElement("track", { kind: "captions", label: "Captions", default: true, src: captions });
  element.append(track);
  return kind === "video" ? [element] : [element, captionsBelow(track.track)];
}

// The captions of the present moment, as text.
function captionsBelow(track) {
  const shown = newElement("p", { className: "captions", dir: "auto" });
  track.mode = "hidden";
  track.oncuechange = () => {
    const said = Array.from(track.activeCues, (cue) => cue.getCueAsHTML().textContent);
    shown.textContent = said.join("\n");
  };
  return shown;
}
