// The list of incidents: what, since when, how sure; it jumps there, and takes "that was a false alarm".
const text = (tag, content, kind) => Object.assign(document.createElement(tag), { textContent: content, className: kind || "" });

export function showIncidents(list, incidents, { jump, said }) {
  list.replaceChildren(...incidents.map((one) => {
    const item = document.createElement("li"), row = text("div", "", "row");
    item.dataset.id = one.id;
    item.dataset.false = one.false_alarm === true;
    const go = text("button", "", "jump"), sentence = one.sentence.replace(/(\d{4}-\d\d-\d\d)T(?=\d)/g, "$1 ");
    go.append(...sentence.split(/(\d{4}-\d\d-\d\d(?: [\d:.]*\d)?)/).map((part, i) => i % 2 ? text("span", part, "date") : part));
    go.type = "button";
    go.title = "Show the moment and the cells";
    go.onclick = () => jump(one);
    const facts = text("span", `${one.kind} · ${one.count} ${one.count === 1 ? "entry" : "entries"} · ${(100 * one.probability).toFixed(1)} % sure`);
    const open = text("span", one.open ? "open" : "closed", one.open ? "alarm" : "");
    const wrong = one.false_alarm === true, answer = text("button", wrong ? "It was real" : "False alarm", "feedback");
    answer.type = "button";
    answer.onclick = async () => { answer.disabled = true; try { await said(one, !wrong); } catch (error) { facts.textContent = error.message; } };
    row.append(open, facts, ...(said ? [answer] : [])); // of a run that is only shown nothing can be said
    item.append(go, row);
    return item;
  }));
  if (!incidents.length) list.append(text("li", "Nothing so far.", "soft"));
}
