// Every stream as a card: newest slice, outlier rate of late, open incidents; and which of many are to be seen.
import { getJson } from "/page/api.js";
const LENGTH = 60; // slices
const MANY = 8; // streams from which on they can be searched

export class Overview {
  constructor(list, find, choose) {
    Object.assign(this, { list, find, choose, cards: new Map() });
    [this.text, this.only] = find.querySelectorAll("input");
    this.text.oninput = this.only.onchange = () => this.sift();
    this.seen = new IntersectionObserver((entries) => { // what was before the page was opened, of cards that are looked at
      for (const one of entries) if (one.isIntersecting) { this.seen.unobserve(one.target); this.recall(one.target.dataset.name).catch(() => {}); }
    });
  }
  set(streams) {
    const names = new Set(streams.map((one) => one.name));
    for (const [name, card] of this.cards) if (!names.has(name)) { card.item.remove(); this.cards.delete(name); }
    for (const one of streams) if (!this.cards.has(one.name)) this.cards.set(one.name, this.card(one));
    for (const one of streams) if (one.newest) this.show(one.name, one.newest);
    this.find.hidden = streams.length < MANY;
    this.sift();
  }
  async recall(name) {
    const { sequence, numbers } = await getJson(`/api/streams/${name}/series?most=${LENGTH}`), card = this.cards.get(name);
    if (!card) return;
    const before = numbers.outlier_rate.filter((_, i) => sequence[i] < card.first);
    card.rates = [...before, ...card.rates].slice(-LENGTH);
    this.draw(card);
  }
  card(one) {
    const item = document.createElement("li"), button = document.createElement("button");
    item.dataset.name = one.name;
    button.type = "button";
    button.innerHTML = "<b></b> <span class=alarm></span><small></small><canvas width=200 height=24 aria-hidden=true></canvas>";
    const [title, alarm, facts, canvas] = button.children;
    title.textContent = one.name;
    facts.textContent = `${one.shape.join("×")}, no slices yet`;
    button.onclick = () => this.choose(one.name);
    item.append(button);
    this.list.append(item);
    this.seen.observe(item);
    return { item, button, alarm, facts, canvas, shape: one.shape, rates: [], first: Infinity, sequence: -1, open: 0 };
  }
  current(name) { for (const [key, card] of this.cards) card.button.setAttribute("aria-current", key === name); }
  update(streams) { // whether there is one that is not known
    let unknown = false;
    for (const one of streams) { if (this.cards.has(one.stream)) this.show(one.stream, one); else unknown = true; }
    return unknown;
  }
  show(name, newest) {
    const card = this.cards.get(name), n = newest.numbers;
    if (n.incidents !== card.open) {
      card.open = n.incidents;
      card.alarm.textContent = n.incidents ? `${n.incidents} open` : "";
      this.sift();
    }
    if (newest.sequence === card.sequence) return;
    card.facts.textContent = `${card.shape.join("×")} · slice ${newest.sequence} · ${(100 * n.outlier_rate).toFixed(1)} % outliers`;
    card.sequence = newest.sequence;
    card.first = Math.min(card.first, newest.sequence);
    card.rates.push(n.outlier_rate);
    if (card.rates.length > LENGTH) card.rates.shift();
    this.draw(card);
  }
  sift() { // which of many streams are shown
    const wanted = this.find.hidden ? "" : this.text.value.trim().toLowerCase(), only = !this.find.hidden && this.only.checked;
    let odd = 0;
    for (const [name, card] of this.cards) {
      odd += card.open > 0;
      card.item.hidden = !name.toLowerCase().includes(wanted) || (only && !card.open);
    }
    this.find.querySelector("small").textContent = `${this.cards.size} streams, ${odd} with open incidents`;
  }
  draw(card) {
    const ink = card.canvas.getContext("2d"), top = Math.max(0.05, ...card.rates);
    ink.clearRect(0, 0, 200, 24);
    ink.fillStyle = "#56a0c8";
    card.rates.forEach((rate, i) => { const tall = Math.max(1, rate / top * 22); ink.fillRect(i * 200 / LENGTH, 24 - tall, 200 / LENGTH - 1, tall); });
  }
}
