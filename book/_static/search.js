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
  function ranked(query, searchTerms, excludedTerms, objectTerms) {
    const { docnames, titles, alltitles } = Search._index, asked = words(query), pages = new Map();
    const of = (page) => {
      if (!pages.has(page)) pages.set(page, { page, title: titles[docnames.indexOf(page)], score: 0, places: [] });
      return pages.get(page);
    };
    for (const [page, , , , score] of Search.performTermsSearch(searchTerms, excludedTerms)) of(page).score = score;
    for (const [file, title] of titles.entries()) {
      const score = answers(plain(title), asked);
      if (score) of(docnames[file]).score = score + 30;
    }
    for (const [title, places] of Object.entries(alltitles)) {
      const score = answers(title, asked);
      for (const [file, anchor] of score ? places : []) if (anchor) of(docnames[file]).places.push({ anchor: `#${anchor}`, title: readable(title), score });
    }
    for (const term of objectTerms)
      for (const [page, title, anchor] of Search.performObjectSearch(term, objectTerms)) {
        const whole = [title, title.split(".").pop()].some((name) => name.toLowerCase() === asked.join(" "));
        const score = !whole ? 12 : /[._]/.test(query) ? 90 : 40; // a word alone may mean more than a name in code
        if (!of(page).places.some((place) => place.anchor === anchor)) of(page).places.push({ anchor, title, score });
      }
    for (const found of pages.values()) {
      found.places.sort((one, two) => two.score - one.score);
      found.score = Math.max(found.score, found.places[0]?.score ?? 0);
    }
    const place = (found) => parseInt(plain(found.title)) || Infinity; // equals in the order of reading
    return [...pages.values()].sort((one, two) => two.score - one.score || (place(one) < place(two) ? -1 : 1));
  }

  Search.query = (query) => {
    const [, searchTerms, excludedTerms, highlightTerms, objectTerms] = Search._parseQuery(query.replace(/\(\)$/, ""));
    const root = document.documentElement.dataset.content_root, found = ranked(query, searchTerms, excludedTerms, objectTerms);
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
  };
})();
