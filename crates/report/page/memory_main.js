// @ts-check
// The script of the page that shows memory alone.
import { showMemory } from "./memory_pane.js";

const { memory } = JSON.parse(document.getElementById("data")?.textContent || "{}");
document.documentElement.classList.add("has-scripts");
for (const figure of document.querySelectorAll("[data-memory]")) {
  showMemory(figure, memory[Number(figure.getAttribute("data-memory"))]);
}
