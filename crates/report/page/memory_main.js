// @ts-check
// The script of the page that shows memory alone.
import { showMemory } from "./memory_pane.js";

const { memory } = JSON.parse(document.getElementById("data")?.textContent || "{}");
for (const pane of document.querySelectorAll(".pane")) pane.classList.add("shown");
for (const figure of document.querySelectorAll("[data-memory]")) {
  showMemory(figure, memory[Number(figure.getAttribute("data-memory"))]);
}
