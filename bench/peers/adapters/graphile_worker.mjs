// graphile-worker: a queue in Node, its jobs woken by NOTIFY and fetched into a local queue.
//
// Setting, from its page on performance: 24 jobs at a time over 25 connections, as in its own measurements, completions
// batched without a delay, a local queue of one more than jobs at a time (500, as in its measurements, was alike, and
// lets one of two processes take a whole round), jobs added in batches, and a refetch delay of 10 ms as in its own
// test. For lone runs the local queue is off, as that page advises for low throughput.
//
// It has no workflows: the task of a step adds the next job before it returns. Completed jobs are deleted, so that only
// the workers' own counts say how many ran. The end of a lone run is taken as known when its last task ran, which is
// before it is recorded.

import { Ends, QUEUE, STEPS, load, serve, version } from "../process.mjs";

const CONCURRENT = 24;
const SUBMITTED = 500;
const LOCAL = CONCURRENT + 1;
const { Logger, makeWorkerUtils, run, runMigrations } = await load("graphile-worker");
const logger = new Logger(() => (level, message) => level === "error" && console.error(message));
const connectionString = process.env.PEER_URL;
const name = (step) => `step_${step}`;

class GraphileWorker {
  steps = Array(STEPS).fill(0);
  ends = new Ends();

  about() {
    return {
      version: version("graphile-worker"),
      setting: { concurrentJobs: CONCURRENT, localQueue: LOCAL, completeJobBatchDelay: 0, added_at_once: SUBMITTED },
      steps: QUEUE,
      open: "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)",
      finished: null,
    };
  }

  async setUp() {
    await runMigrations({ connectionString, logger });
  }

  async role(role) {
    this.utils = await makeWorkerUtils({ connectionString, logger });
    if (role === "submit") return () => this.utils.release();
    const tasks = Object.fromEntries(this.steps.map((_, step) => [name(step), this.task(step)]));
    const queue = role === "work" ? { size: LOCAL, refetchDelay: { durationMs: 10 } } : { size: -1 };
    const worker = {
      connectionString,
      concurrentJobs: CONCURRENT,
      maxPoolSize: CONCURRENT + 1,
      localQueue: queue,
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    };
    const runner = await run({ preset: { worker }, taskList: tasks, logger, noHandleSignals: true });
    return async () => {
      await runner.stop();
      await this.utils.release();
    };
  }

  async submit(runs) {
    for (let done = 0; done < runs; done += SUBMITTED) {
      const count = Math.min(SUBMITTED, runs - done);
      await this.utils.addJobs(Array.from({ length: count }, () => ({ identifier: name(0), payload: {} })));
    }
  }

  async lone() {
    this.ends.begin();
    await this.utils.addJob(name(0), {});
    await this.ends.wait();
  }

  task(step) {
    return async (_, helpers) => {
      this.steps[step] += 1;
      if (step < STEPS - 1) await helpers.addJob(name(step + 1), {});
      else this.ends.tell();
    };
  }
}

await serve(new GraphileWorker());
