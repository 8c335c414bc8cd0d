// A peer's process in Node: the same roles, requests and answers as process.py, which says what they mean.
// Invariant: console.log goes to stderr, so that nothing a library prints is taken for an answer.

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

export const STEPS = 3;
export const QUEUE = "a step's end and the next step's start are not atomic";
const PATIENCE = 30_000;
const answer = (content) => process.stdout.write(JSON.stringify(content) + "\n");

for (const name of ["log", "info", "debug"]) console[name] = console.error;

const modules = createRequire(join(process.env.PEER_MODULES, "package.json"));

/** A package that was installed outside this repository. */
export const load = (name) => import(pathToFileURL(modules.resolve(name)));

/** The version of such a package. */
export const version = (name) => modules(join(process.env.PEER_MODULES, "node_modules", name, "package.json")).version;

/** Tells the one who waits that the last step of the lone run was executed in this process. */
export class Ends {
  begin() {
    this.ended = new Promise((resolve, reject) => {
      this.tell = resolve;
      setTimeout(() => reject(new Error("a lone run has not ended")), PATIENCE).unref();
    });
    this.ended.catch(() => {});
  }
  tell() {}
  wait() {
    return this.ended;
  }
}

/** Do the role that the command line names. */
export async function serve(adapter) {
  const role = process.argv[2];
  if (role === "set-up") {
    await adapter.setUp();
    answer({ ready: true, ...adapter.about() });
    return;
  }
  const stop = await adapter.role(role);
  answer({ ready: true, ...adapter.about() });
  for await (const line of createInterface({ input: process.stdin })) {
    answer(await answered(adapter, JSON.parse(line)));
  }
  await stop();
  process.exit(0);
}

async function answered(adapter, request) {
  if (request.do === "submit") {
    await adapter.submit(request.runs);
    return { submitted: request.runs };
  }
  if (request.do === "lone") {
    const milliseconds = [];
    for (let run = 0; run < request.runs; run += 1) {
      const begun = performance.now();
      await adapter.lone();
      milliseconds.push(performance.now() - begun);
    }
    return { milliseconds };
  }
  return { steps: adapter.steps };
}
