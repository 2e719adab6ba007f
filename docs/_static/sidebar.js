// Fold the chapters of the side bar, but the first two and that of the page.
for (const [i, caption] of document.querySelectorAll(".sidebar-tree .caption").entries()) {
  const pages = caption.nextElementSibling;
  const chapter = document.createElement("details");
  const name = document.createElement("summary");
  chapter.open = i < 2 || pages.querySelector(".current") !== null;
  caption.before(chapter);
  name.append(caption);
  chapter.append(name, pages);
}
