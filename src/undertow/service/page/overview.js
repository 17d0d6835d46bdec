// Every stream as a card: newest slice, outlier rate of late, open incidents.
import { getJson } from "/page/api.js";
const LENGTH = 60; // slices

export class Overview {
  constructor(list, choose) { Object.assign(this, { list, choose, cards: new Map() }); }
  set(streams) {
    const names = new Set(streams.map((one) => one.name));
    for (const [name, card] of this.cards) if (!names.has(name)) { card.item.remove(); this.cards.delete(name); }
    const fresh = streams.filter((one) => !this.cards.has(one.name));
    for (const one of fresh) this.cards.set(one.name, this.card(one));
    for (const one of streams) if (one.newest) this.show(one.name, one.newest);
    this.recall(fresh.filter((one) => one.newest)).catch(() => {});
  }
  async recall(streams) { // what was before the page was opened, one stream after the other
    for (const { name } of streams) {
      const { sequence, numbers } = await getJson(`/api/streams/${name}/series?most=${LENGTH}`), card = this.cards.get(name);
      if (!card) continue;
      const before = numbers.outlier_rate.filter((_, i) => sequence[i] < card.first);
      card.rates = [...before, ...card.rates].slice(-LENGTH);
      this.draw(card);
    }
  }
  card(one) {
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.innerHTML = "<b></b> <span class=alarm></span><small></small><canvas width=200 height=24 aria-hidden=true></canvas>";
    button.querySelector("b").textContent = one.name;
    button.querySelector("small").textContent = `${one.shape.join("×")}, no slices yet`;
    button.onclick = () => this.choose(one.name);
    item.append(button);
    this.list.append(item);
    return { item, button, shape: one.shape, rates: [], first: Infinity, sequence: -1 };
  }
  current(name) { for (const [key, card] of this.cards) card.button.setAttribute("aria-current", key === name); }
  update(streams) { // whether there is one that is not known
    let unknown = false;
    for (const one of streams) { if (this.cards.has(one.stream)) this.show(one.stream, one); else unknown = true; }
    return unknown;
  }
  show(name, newest) {
    const card = this.cards.get(name), n = newest.numbers;
    card.button.querySelector(".alarm").textContent = n.incidents ? `${n.incidents} open` : "";
    card.button.querySelector("small").textContent = `${card.shape.join("×")} · slice ${newest.sequence} · ${(100 * n.outlier_rate).toFixed(1)} % outliers`;
    if (newest.sequence === card.sequence) return;
    card.sequence = newest.sequence;
    card.first = Math.min(card.first, newest.sequence);
    card.rates = [...card.rates, n.outlier_rate].slice(-LENGTH);
    this.draw(card);
  }
  draw(card) {
    const ink = card.button.querySelector("canvas").getContext("2d"), top = Math.max(0.05, ...card.rates);
    ink.clearRect(0, 0, 200, 24);
    ink.fillStyle = "#56a0c8";
    card.rates.forEach((rate, i) => { const tall = Math.max(1, rate / top * 22); ink.fillRect(i * 200 / LENGTH, 24 - tall, 200 / LENGTH - 1, tall); });
  }
}
