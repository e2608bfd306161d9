// The set-up as one picture, SVG or PNG, with its link in it: what is seen, drawn side by side.
(function (lab) {
  "use strict";
  const WIDE = 1200, EDGE = 36, SIDE = 360, STEP = SIDE + 24; // pixels; three pictures in a row
  const LETTERS = 170; // of a link in a line
  // Looks that a copy takes with it, and what each is where none is given.
  const LOOKS = { fill: "", "fill-opacity": "1", stroke: "none", "stroke-width": "1px", "stroke-dasharray": "none", opacity: "1",
    "font-size": "", "font-weight": "400", "text-anchor": "start", "paint-order": "normal" };
  const CAPTIONS = ["The tokens", "Where W points, and how long it is", '1 − cosine with W<tspan dy="3" font-size="12">mm</tspan>'];
  const { tag } = lab.svgWords;
  const leads = (link) => link.startsWith("http"); // or says where in a copy of the book to look
  const safe = (words) => words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

  // A copy of a picture that needs no sheet, without what only a page needs.
  function copied(svg, x, y, high) {
    const copy = svg.cloneNode(true), own = [copy, ...copy.querySelectorAll("*")];
    [svg, ...svg.querySelectorAll("*")].forEach((each, k) => {
      const looks = getComputedStyle(each), drawn = !/^(svg|g)$/.test(each.tagName);
      for (const name of own[k].getAttributeNames())
        if (/^(class|role|tabindex|data-|aria-)/.test(name)) own[k].removeAttribute(name);
      for (const [name, plain] of Object.entries(LOOKS))
        if ((drawn || name === "opacity") && looks.getPropertyValue(name) !== plain && (name !== "font-size" || /^t/.test(each.tagName)))
          own[k].setAttribute(name, looks.getPropertyValue(name));
      if (each.classList.contains("hit")) own[k].remove();
    });
    for (const [name, value] of Object.entries({ x, y, width: SIDE, height: high })) copy.setAttribute(name, value);
    return new XMLSerializer().serializeToString(copy);
  }

  // An SVG of all pictures of the page, with a title, who races, and a link.
  lab.picture = function (root, title, link) {
    const style = getComputedStyle(root), ink = style.color, ground = getComputedStyle(document.body).backgroundColor;
    const words = (x, y, text, more = {}) => tag("text", { x, y, fill: ink, "font-size": 15, ...more }, safe(text));
    const parts = [words(EDGE, 30, title, { "font-size": 24, "font-weight": 600 }),
      words(WIDE - EDGE, 30, root.querySelector("[data-lab=time]").getAttribute("aria-valuetext"), { "text-anchor": "end" })];
    CAPTIONS.forEach((caption, k) => parts.push(tag("text", { x: EDGE + k * STEP, y: 53, fill: ink, "font-size": 14 }, caption)));
    root.querySelectorAll("figure > svg").forEach((svg, k) => parts.push(copied(svg, EDGE + k * STEP, 60, SIDE)));
    root.querySelectorAll("[data-lab=attention] > svg").forEach((svg, k) => parts.push(copied(svg, EDGE + k * STEP, 428, 128)));
    let x = EDGE;
    for (const each of root.querySelectorAll("[data-racer]:not([hidden])")) {
      const name = [...each.children].slice(1).filter((part) => !part.matches(".place, svg")).map((part) => part.textContent).join("") || each.textContent.trim();
      const known = each.querySelector(".place"), place = known?.textContent.match(/^(\d\w\w|lost)/)?.[0] ?? "", sign = each.querySelector("svg");
      if (known && !known.textContent) continue; // no part of this race
      parts.push(copied(sign, x - SIDE / 2 + 20, 572, 16), words(x + 48, 585, `${name} ${place}`));
      x += 72 + 9 * (name.length + place.length);
    }
    const lines = link.match(new RegExp(`.{1,${LETTERS}}`, "g")) ?? [""], high = 612 + 18 * lines.length;
    const shown = lines.map((line, k) => words(EDGE, 612 + 18 * k, line, { "font-size": 12.5 })).join("");
    parts.push(leads(link) ? tag("a", { href: safe(link) }, shown) : shown);
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDE} ${high}" width="${WIDE}" height="${high}" font-family="system-ui, sans-serif">` +
      `${tag("title", {}, safe(title))}<rect width="100%" height="100%" fill="${ground}"/>${parts.join("")}</svg>`;
  };

  // The check of a part of a PNG
  function crc(bytes) {
    let sum = ~0;
    for (const byte of bytes) {
      sum ^= byte;
      for (let k = 0; k < 8; k++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
    }
    return ~sum >>> 0;
  }

  // A PNG of an SVG, twice as fine, which holds the link as text, too.
  lab.png = async function (svg, link) {
    const image = new Image();
    image.src = "data:image/svg+xml," + encodeURIComponent(svg);
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
    const body = new TextEncoder().encode(`tEXt${leads(link) ? "URL" : "Comment"}\0${link}`), part = new DataView(new ArrayBuffer(body.length + 8));
    part.setUint32(0, body.length - 4);
    new Uint8Array(part.buffer).set(body, 4);
    part.setUint32(body.length + 4, crc(body));
    const head = 33; // the signature and the first part, which says how large it is
    return new Blob([blob.slice(0, head), part.buffer, blob.slice(head)], { type: "image/png" });
  };

  lab.offer = function (blob, name) {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
})((globalThis.Laboratory ??= {}));
