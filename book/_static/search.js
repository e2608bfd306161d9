// A search result quotes the article's prose, not its code, nor the buttons and the contents around it.
document.addEventListener("DOMContentLoaded", () => {
  const text = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const article = page.querySelector("article.bd-article");
    if (!article) return text(html, anchor);
    for (const beside of article.querySelectorAll(".prov, h1, .cell_input")) beside.remove(); // the title stands above
    return text(`<div role="main">${article.innerHTML}</div>`, anchor);
  };
});
