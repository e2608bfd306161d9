// The search page: pages by how well a title in them answers, their sections and boxes below them, and a quote of their prose.
(() => {
  const text = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const article = page.querySelector("article.bd-article");
    if (!article) return text(html, anchor);
    for (const beside of article.querySelectorAll(".prov, h1, .cell_input")) beside.remove(); // the title stands above
    return text(`<div role="main">${article.innerHTML}</div>`, anchor);
  };

  const MOST_BELOW = 4; // places listed below a page
  const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+(?:\.[\p{L}\p{N}_]+)*/gu) ?? [];
  const plain = (html) => html.replace(/<[^>]*>/g, "");
  const readable = (tex) => tex.replaceAll("\\cdot", "·").replace(/\\[,|]?/g, "");

  // A query as it is typed, and with British and American spellings.
  const SPELT = [["isa", "iza"], ["ise", "ize"], ["isi", "izi"], ["colour", "color"], ["centre", "center"], ["behaviour", "behavior"], ["neighbour", "neighbor"]];
  const spellings = (query) => new Set([query, ...[[0, 1], [1, 0]].map(([from, to]) => SPELT.reduce((text, pair) => text.replaceAll(pair[from], pair[to]), query.toLowerCase()))]);

  // How well a title answers a query: 90 if it is its whole, its name before a bracket or what is inside; at most 70 if it has all its words.
  function answers(title, asked) {
    const bare = title.replace(/^\d+\. /, "");
    const parts = [title, bare, bare.replace(/^(an?|the) /i, ""), bare.replace(/ \(.*$/, ""), bare.replace(/^.*? \((.*)\)$/, "$1")];
    if (parts.some((part) => words(part).join(" ") === asked.join(" "))) return 90;
    const stem = new Stemmer(), there = words(bare);
    const meets = (word, other) => word === other || (/^\D{3,}$/.test(word) && (other.startsWith(word) || stem.stemWord(word) === stem.stemWord(other)));
    const wanted = asked.filter((word) => !stopwords.includes(word));
    if (!wanted.length || !wanted.every((word) => there.some((other) => meets(word, other)))) return 0;
    const first = asked.every((word, k) => there[k] && meets(word, there[k]));
    return 50 * Math.min(1, asked.length / there.length) + 20 * first;
  }

  // The pages found, best first, with the places in them: {page, title, score, places: [{anchor, title, score}]}.
  function ranked(queries, parsed) {
    const { docnames, titles, alltitles } = Search._index, asked = queries.map(words), pages = new Map();
    const coded = (page) => !/[._]/.test(queries[0]) && page.startsWith("book/reference/"); // a word alone means more than a name in code
    const best = (title) => Math.max(...asked.map((each) => answers(title, each)));
    const of = (page) => {
      if (!pages.has(page)) pages.set(page, { page, title: titles[docnames.indexOf(page)], score: 0, places: [] });
      return pages.get(page);
    };
    for (const [, terms, excluded] of parsed)
      for (const [page, , , , score] of Search.performTermsSearch(terms, excluded)) of(page).score = Math.max(of(page).score, score);
    for (const [file, title] of titles.entries()) {
      const score = best(plain(title));
      if (score) of(docnames[file]).score = score + (score < 90 && coded(docnames[file]) ? 0 : 30);
    }
    for (const [title, places] of Object.entries(alltitles)) {
      const score = best(title);
      for (const [file, anchor] of score ? places : []) if (anchor) of(docnames[file]).places.push({ anchor: `#${anchor}`, title: readable(title), score });
    }
    const [query] = queries, [[, , , , names]] = parsed;
    for (const term of names)
      for (const [page, title, anchor] of Search.performObjectSearch(term, names)) {
        const whole = [title, title.split(".").pop()].some((name) => name.toLowerCase() === asked[0].join(" "));
        const score = !whole ? 2 : /[._]/.test(query) ? 90 : /^attnbias\.\w+$/.test(title) ? 40 : 8;
        if (!of(page).places.some((place) => place.anchor === anchor)) of(page).places.push({ anchor, title, score });
      }
    for (const found of pages.values()) {
      found.places.sort((one, two) => two.score - one.score);
      found.score = Math.max(found.score, found.places[0]?.score ?? 0);
    }
    const place = (found) => String(parseInt(plain(found.title)) || 1e6).padStart(8) + found.page; // equals in the order of reading
    return [...pages.values()].sort((one, two) => two.score - one.score || (place(one) < place(two) ? -1 : 1));
  }

  Search.query = (query) => {
    const queries = [...spellings(query.replace(/\(\)$/, ""))], parsed = queries.map(Search._parseQuery);
    const [searchTerms, highlightTerms] = [1, 3].map((part) => new Set(parsed.flatMap((each) => [...each[part]])));
    const root = document.documentElement.dataset.content_root, found = ranked(queries, parsed);
    const link = (href, title) => Object.assign(document.createElement("a"), { href, ...title });
    const quoted = new IntersectionObserver((entries) => {
      for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
        quoted.unobserve(target);
        const page = new XMLHttpRequest(); // fetch has no files from a disk
        page.open("GET", target.querySelector("a").href);
        page.onload = () => {
          target.append(Search.makeSearchSummary(page.responseText, searchTerms) ?? "");
          for (const term of highlightTerms) _highlightText(target, term, "highlighted");
        };
        page.send();
      }
    });
    for (const { page, title, places } of found) {
      const item = document.createElement("li"), address = `${root}${page}.html`;
      item.append(link(address, { innerHTML: title }));
      const below = item.appendChild(document.createElement("ul"));
      for (const { anchor, title } of places.slice(0, MOST_BELOW)) below.appendChild(document.createElement("li")).append(link(address + anchor, { textContent: title }));
      if (!places.length) below.remove();
      Search.output.append(item);
      quoted.observe(item);
    }
    _finishSearch(found.length);
    if (!found.length) Search.status.textContent = "No page has all of these words. Try fewer of them, or those of the glossary on the page Notation.";
  };
})();
