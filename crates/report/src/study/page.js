document.querySelectorAll("details.command button").forEach(button => {
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(button.nextElementSibling.textContent)
      .then(() => { button.textContent = "copied"; });
  });
});
// What is folded opens for whoever follows a link to it.
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target?.scrollIntoView();
}
addEventListener("hashchange", unfold);
if (location.hash) unfold();
