// Run in a browser: `renew` against trees made at random. Gives the number of trees that were compared.
async (assets) => {
  const { fill, h, renew } = await import(`${assets}dom.js`);
  let seed = 7;
  const random = (below) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 16) % below;
  };
  const check = (holds, what) => { if (!holds) throw new Error(what); };
  let clicked = null;
  // A tree as data, so that it can be made twice.
  const tree = (depth) => Array.from({ length: random(5) }, () => {
    if (depth === 0 || random(4) === 0) return `text ${random(3)}`;
    const key = random(3) === 0 ? `key-${random(4)}` : null;
    return { tag: ["div", "p", "tr", "span"][random(4)], key, kind: random(2) ? `kind-${random(2)}` : null, id: random(1000), children: tree(depth - 1) };
  });
  const make = (list, round) => list.map((one) => (typeof one === "string" ? one
    : h(one.tag, { "data-key": one.key, class: one.kind, title: String(one.id), onclick: (event) => {
      clicked = `${round} ${one.id}`;
      event.stopPropagation();
    } }, make(one.children, round))));
  const rounds = 500;
  const box = h("div");
  for (let round = 0; round < rounds; round += 1) {
    const wanted = tree(3);
    const before = new Map([...box.children].filter((one) => one.dataset.key).map((one) => [one.dataset.key, one]));
    renew(box, make(wanted, round));
    check(box.isEqualNode(fill(h("div"), make(wanted, round))), `round ${round}: ${box.innerHTML}`);
    for (const one of box.querySelectorAll("[title]")) {
      one.click();
      check(clicked === `${round} ${one.title}`, `round ${round}: a handler of ${clicked} on ${one.title}`);
    }
    const keys = [...box.children].map((one) => one.dataset.key);
    for (const one of box.children) {
      const old = before.get(one.dataset.key);
      const alone = keys.filter((key) => key === one.dataset.key).length === 1;
      if (old && alone && old.tagName === one.tagName && old.className === one.className) check(old === one, `round ${round}: ${one.dataset.key} was replaced`);
    }
  }
  // What the user does stays: typed text and focus, an open row, a pressed button; what is held elsewhere is replaced.
  const page = (n) => [n % 2 ? h("p", { class: "note" }, "more") : null, h("input", { value: "server" }), h("details", null, h("summary", null, "More"), String(n)),
    h("table", null, h("tbody", null, Array.from({ length: 3 }, (_, at) => h("tr", { "data-key": `row-${n - at}` }, h("td", null, h("button", null, String(n - at))))))),
    h("canvas", { own: true })];
  document.body.append(fill(box, page(10)));
  const [input, details, canvas] = ["input", "details", "canvas"].map((tag) => box.querySelector(tag));
  const pressed = box.querySelector("[data-key=row-9] button");
  input.focus();
  input.value = "half ty";
  input.setSelectionRange(4, 4);
  details.open = true;
  for (const n of [11, 10, 11]) renew(box, page(n));
  check(document.activeElement === input && input.value === "half ty" && input.selectionStart === 4, "what is typed is lost");
  check(details.isConnected && details.open && details.textContent === "More11", "what was opened is closed");
  check(pressed.isConnected && pressed.textContent === "9", "the row that is pressed was replaced");
  check(!canvas.isConnected, "an element that is held elsewhere stays");
  input.value = "server";
  renew(box, h("input", { value: "other" }));
  check(input.isConnected && input.value === "other", "what was not changed is not renewed");
  box.remove();
  return rounds;
}
