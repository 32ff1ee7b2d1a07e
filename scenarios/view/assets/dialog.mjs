// dialog.mjs asks before an action, performs it, and says how it went.

import { el } from "./dom.mjs";

// send sends a POST to the lab. It throws what the lab answers when it refuses.
export async function send(path, body, type = "application/json") {
  const r = await fetch(path, { method: "POST", headers: { "Content-Type": type }, body });
  if (!r.ok) throw new Error((await r.text()).trim() || r.statusText);
}

let hiding = 0;

export function toast(text, bad) {
  const t = document.getElementById("toast");
  t.textContent = text;
  t.classList.toggle("bad", Boolean(bad));
  t.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { t.hidden = true; }, bad ? 8000 : 3500);
}

// ask opens the confirmation of an action on a server. lists has the choices of fields that
// depend on the server.
export function ask(action, server, lists) {
  const dialog = document.getElementById("dialog"), inputs = {};
  const rows = action.fields.map((f) => {
    const id = `field-${f.name}`, choices = f.choices || (f.from && lists[f.from]);
    inputs[f.name] = choices ? el("select", { id }, choices.map((c) => (typeof c === "string" ? el("option", { value: c, text: c }) : el("option", { value: c.value, text: c.label }))))
      : action.name === "add-fault" ? el("textarea", { id, rows: 3, class: "mono", spellcheck: "false" }) : el("input", { id, type: "text", spellcheck: "false", placeholder: f.hint });
    if (!choices && action.name === "add-fault") inputs[f.name].value = f.hint;
    return el("div", { class: "row" }, el("label", { for: id, text: f.label }), inputs[f.name],
      choices && !choices.length && el("p", { class: "refused", text: "There is none." }));
  });
  const refused = el("p", { class: "refused", role: "alert" });
  const confirm = el("button", { type: "submit", class: "primary", text: action.label });
  const form = el("form", {},
    el("h2", { id: "question", text: `${action.label}: ${server}` }), rows,
    action.fields.length === 0 && el("p", { text: "This happens at once." }), refused,
    el("div", { class: "buttons" }, el("button", { type: "button", text: "Cancel", onclick: () => dialog.close() }), confirm));
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    confirm.disabled = true;
    refused.textContent = "";
    const values = Object.fromEntries(Object.entries(inputs).map(([k, i]) => [k, i.value.trim()]));
    try {
      await send(`/hosts/${encodeURIComponent(server)}/actions/${action.name}`, JSON.stringify(values));
      dialog.close();
      toast(`${server}: ${[action.label, ...Object.values(values)].join(" ").slice(0, 120)}`);
    } catch (err) {
      refused.textContent = err.message;
    } finally {
      confirm.disabled = false;
    }
  });
  dialog.replaceChildren(form);
  dialog.showModal();
}
