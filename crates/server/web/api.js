// Questions to the server that gave us this page. Addresses are relative: the token stays in the path.

import { query } from "./dom.js";

/** A fault as the server says it; `kind` is `offline` when it does not answer. `place` is where in a query it lies. */
export class Fault extends Error {
  constructor(kind, message, place) {
    super(message);
    this.kind = kind;
    this.place = place;
  }
}

/** The address of an answer; `form` is `csv` for a download. */
export function address(view, params, form) {
  return `api/v1/${view}${query(form ? { ...params, form } : params)}`;
}

async function read(response) {
  let body;
  try {
    body = await response.json();
  } catch {
    throw new Fault("failed", `the server answered ${response.status} without JSON`);
  }
  if (!response.ok || response.status === 202) throw new Fault(body.error?.kind || "failed", body.error?.message || `status ${response.status}`, body.error?.place);
  return body;
}

/** Asks a view. An answer that takes long comes in part first, with `complete` false. Throws a Fault. */
export async function ask(view, params, signal) {
  let response;
  try {
    response = await fetch(address(view, { ...params, soon: "1" }), { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Fault("offline", "the server does not answer; it may have been stopped");
  }
  return read(response);
}

/** Sends a JSON body. */
export async function send(view, body) {
  const response = await fetch(address(view), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return read(response);
}

/**
 * Follows events of one name; the browser reconnects by itself. `onDown(true, ended)` while it does, or when it
 * has stopped waiting.
 */
export function follow(name, onValue, onDown) {
  const events = new EventSource("api/v1/events");
  events.addEventListener(name, (event) => {
    onDown?.(false);
    onValue(JSON.parse(event.data));
  });
  events.addEventListener("error", () => onDown?.(true, events.readyState === EventSource.CLOSED));
  return events;
}
