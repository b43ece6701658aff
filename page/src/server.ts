// Requests to the server that has sent this page.

import type { ExploredRun, Moment, SourceText } from "./documents";

/** A request that was refused, with the server's sentence. */
export class Refusal extends Error {}

async function answer<T>(path: string, init: RequestInit = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...init });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Refusal("the server does not answer: `durasim explore` has ended");
  }
  const document = await response.json();
  if (!response.ok) throw new Refusal(String(document.problem));
  return document as T;
}

/** Exchanges the token in the address for a cookie, and removes it from the address. */
export async function openSession(): Promise<void> {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  await answer("/session", { method: "POST", body: JSON.stringify({ token }) });
}

export const readRun = () => answer<ExploredRun>("/run");

export function readMoment(id: string, lines: number[], signal: AbortSignal): Promise<Moment> {
  const query = new URLSearchParams({ id, lines: lines.map(hexadecimal).join(",") });
  return answer<Moment>(`/moment?${query}`, { signal });
}

export const readSource = (file: number) => answer<SourceText>(`/source?file=${file}`);

export const hexadecimal = (value: number) => `0x${value.toString(16)}`;
