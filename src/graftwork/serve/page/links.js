// Where the views are: the part of the address behind `#/`.

/** The view of one task. */
export function taskLink(name) {
  return `#/tasks/${encodeURIComponent(name)}`;
}

/** The parts of the present address: `#/tasks/x` is ["tasks", "x"]. */
export function place() {
  const parts = location.hash.startsWith("#/") ? location.hash.slice(2).split("/") : [""];
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return parts; // not an address of ours
  }
}
