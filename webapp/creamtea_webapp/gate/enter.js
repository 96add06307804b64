// The secret is the part of the link after "#". It leaves the address bar before anything else happens.
const secret = location.hash.slice(1);
// What stands before it names the page, as in /enter?study=4#…, or who comes from a recruiting platform
const query = location.search;
history.replaceState(null, "", location.pathname);
// Another link that is opened in this tab differs only after the "#", and so does not load the page again.
addEventListener("hashchange", () => location.reload());

const entrance = document.getElementById("entrance");
const button = document.getElementById("open");
const statusLine = document.getElementById("status");

function refuse(why) {
  entrance.hidden = true;
  statusLine.textContent = why;
}

async function openLink() {
  button.disabled = true;
  let answer;
  try {
    answer = await fetch(`enter${query}`, { method: "POST", body: secret });
  } catch {
    statusLine.textContent = "The server does not answer. Try again.";
    button.disabled = false;
    return;
  }
  if (answer.ok) {
    location.replace(answer.headers.get("content-location") ?? "./");
  } else if (answer.status === 429 || answer.status === 503) {
    statusLine.textContent = await answer.text();
    button.disabled = false; // the link may still be good
  } else {
    refuse(await answer.text());
  }
}

if (secret === "") {
  refuse("This link is not complete. Open it exactly as it was printed or sent.");
} else {
  button.addEventListener("click", openLink);
  // On this machine nobody but its user follows the link; elsewhere a person presses the button.
  if (["localhost", "127.0.0.1", "[::1]"].includes(location.hostname)) openLink();
}
