// Requests, and the socket that connects anew.
const dialog = document.getElementById("token-dialog");

export function token() { return sessionStorage.getItem("undertow-token"); }

async function askToken() {
  if (!dialog.open) dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  sessionStorage.setItem("undertow-token", document.getElementById("token").value);
}

async function send(path, options = {}) {
  const headers = { ...(options.headers || {}) };
  if (token()) headers.authorization = `Bearer ${token()}`;
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) { await askToken(); return send(path, options); }
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error || `status ${answer.status}`);
  return answer;
}

export const getJson = async (path) => (await send(path)).json();
export const getFrame = async (path) => parseFrame(await (await send(path)).arrayBuffer());
export const postJson = async (path, content) => (await send(path, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(content) })).json();

export function parseFrame(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const all = new Float32Array(buffer, 4 + length), size = all.length / 4;
  const plane = (n) => all.subarray(n * size, (n + 1) * size);
  return { ...header, data: plane(0), mean: plane(1), std: plane(2), probability: plane(3) };
}

export class Live {
  constructor(onFrame, onOverview, onState) {
    Object.assign(this, { onFrame, onOverview, onState, watched: null, pause: 250 });
    this.open();
  }
  open() {
    const protocols = ["undertow"];
    if (token()) protocols.push("token." + btoa(token()).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, ""));
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/live`, protocols);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => { this.pause = 250; this.socket = socket; this.watch(this.watched); this.onState(true); };
    socket.onmessage = (event) => {
      if (typeof event.data === "string") this.onOverview(JSON.parse(event.data).streams);
      else this.onFrame(parseFrame(event.data));
    };
    socket.onclose = () => {
      this.onState(false);
      this.socket = null;
      setTimeout(() => this.open(), this.pause);
      this.pause = Math.min(5000, this.pause * 1.6);
    };
  }
  watch(name) {
    this.watched = name;
    if (this.socket && this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ watch: name }));
  }
}
