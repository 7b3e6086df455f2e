document.querySelectorAll("details.command button").forEach(button => {
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(button.nextElementSibling.textContent)
      .then(() => { button.textContent = "copied"; });
  });
});
