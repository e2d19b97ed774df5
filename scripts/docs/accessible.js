// What mdbook's pages lack for readers without a mouse or a screen.
(() => {
  const byId = id => document.getElementById(id);

  // Landmarks: all that a page shows is in one.
  byId("mdbook-menu-bar").setAttribute("role", "banner");
  const help = byId("mdbook-help-popup");
  help.setAttribute("role", "dialog");
  help.setAttribute("aria-label", "Keyboard shortcuts");
  const search = byId("mdbook-search-wrapper");
  if (search) {
    search.setAttribute("role", "search");
    const field = byId("mdbook-searchbar");
    field.setAttribute("aria-label", "Search this book");
    field.setAttribute("aria-describedby", "mdbook-searchresults-header");
  }

  // The contents open by a label, which no key reaches. Where scripts run a button stands in for it.
  const label = byId("mdbook-sidebar-toggle");
  const button = document.createElement("button");
  button.type = "button";
  button.className = label.className;
  button.title = label.title;
  button.append(...label.childNodes);
  button.addEventListener("click", () => label.click());
  for (const name of ["aria-label", "aria-controls"]) {
    button.setAttribute(name, label.getAttribute(name));
  }
  const follow = () => button.setAttribute("aria-expanded", label.getAttribute("aria-expanded"));
  new MutationObserver(follow).observe(label, { attributeFilter: ["aria-expanded"] });
  follow();
  label.before(button);
  label.classList.add("hidden");

  // Tables and code that are wider than the page scroll by keys. One that fits is no stop of the Tab key.
  const boxes = document.querySelectorAll(".table-wrapper, pre > code");
  const update = box => {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  };
  const sizes = new ResizeObserver(entries => entries.forEach(entry => update(entry.target)));
  for (const box of boxes) {
    sizes.observe(box);
    // Left and right turn the page elsewhere: mdbook listens at the document.
    box.addEventListener("keydown", event => {
      if (document.activeElement === box && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
        event.stopPropagation();
      }
    });
  }
  document.fonts.ready.then(() => boxes.forEach(update));
})();
