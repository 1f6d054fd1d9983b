// On a narrow screen, mintage.css shows each row of a wide table as a list. Its cells then need the names of their columns.
addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    const names = [...table.querySelectorAll("thead th")].map((th) => th.textContent.trim());
    for (const cell of table.querySelectorAll("tbody td")) {
      if (names[cell.cellIndex] && cell.textContent.trim()) cell.dataset.column = names[cell.cellIndex];
    }
  }
});
