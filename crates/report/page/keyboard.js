// @ts-check
// Keys that work everywhere on the page.

/**
 * @param {{ panes: string[], go: (pane: string) => void, find: () => void }} actions
 */
export function listenToKeys({ panes, go, find }) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const number = Number(event.key);
    if (number >= 1 && number <= panes.length) { event.preventDefault(); go(panes[number - 1]); }
    if (event.key === "/") { event.preventDefault(); find(); }
  });
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
}
