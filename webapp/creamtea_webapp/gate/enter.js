// The secret is the part of the link after "#". It leaves the address bar before anything else happens.
const secret = location.hash.slice(1);
history.replaceState(null, "", location.pathname);

const button = document.getElementById("open");
const statusLine = document.getElementById("status");

async function openLink() {
  button.disabled = true;
  let answer;
  try {
    answer = await fetch("/enter", { method: "POST", body: secret });
  } catch {
    statusLine.textContent = "The server does not answer. Try again.";
    button.disabled = false;
    return;
  }
  if (answer.ok) {
    location.replace("/");
  } else {
    statusLine.textContent = await answer.text();
  }
}

if (secret === "") {
  button.hidden = true;
  statusLine.textContent = "This link is not complete. Open it exactly as it was printed or sent.";
} else {
  button.addEventListener("click", openLink);
  // On this machine nobody but its user follows the link; elsewhere a person presses the button.
  if (["localhost", "127.0.0.1", "[::1]"].includes(location.hostname)) openLink();
}
