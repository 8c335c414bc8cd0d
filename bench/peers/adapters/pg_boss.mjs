// pg-boss: a queue in Node, its workers woken by NOTIFY where both sides opt in.
//
// Setting, from its pages on workers and jobs: useListenNotify with queues that notify, batches, burstWhenBatchFull,
// which fetches on without a pause while batches are full, jobs inserted many at once; 100 jobs a batch, 2 workers a
// process.
//
// A step is a queue of its own. The handler of a batch inserts the next steps of all its jobs in one call before it
// returns; a batch succeeds or fails as a whole. It also has flows, whose later jobs are found by polling only (0.5 s
// and more), and handlers inside the transaction that completes their batch. The end of a lone run is taken as known
// when its last handler ran, which is before it is recorded.

import { Ends, QUEUE, STEPS, load, serve, version } from "../process.mjs";

const BATCH = 100;
const WORKERS = 2;
const SUBMITTED = 500;
const { PgBoss } = await load("pg-boss");
const name = (step) => `step-${step}`;
const empty = (count) => Array.from({ length: count }, () => ({ data: {} }));

class Boss {
  steps = Array(STEPS).fill(0);
  ends = new Ends();
  boss = new PgBoss({ connectionString: process.env.PEER_URL, useListenNotify: true });

  constructor() {
    this.boss.on("error", (error) => console.error(error));
  }

  about() {
    return {
      version: version("pg-boss"),
      setting: { batchSize: BATCH, localConcurrency: WORKERS, notify: true, inserted_at_once: SUBMITTED },
      steps: QUEUE,
      open: "SELECT EXISTS (SELECT FROM pgboss.job WHERE name LIKE 'step-%' AND state < 'completed')",
      finished: `SELECT count(*) FROM pgboss.job WHERE name = '${name(STEPS - 1)}' AND state = 'completed'`,
    };
  }

  async setUp() {
    await this.boss.start();
    for (let step = 0; step < STEPS; step += 1) await this.boss.createQueue(name(step), { notify: true });
    await this.boss.stop();
  }

  async role(role) {
    await this.boss.start();
    const options = {
      batchSize: BATCH,
      localConcurrency: role === "work" ? WORKERS : 1,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
    };
    if (role !== "submit") {
      for (let step = 0; step < STEPS; step += 1) {
        await this.boss.work(name(step), options, (jobs) => this.handle(step, jobs));
      }
    }
    return () => this.boss.stop({ graceful: true, timeout: 5_000 });
  }

  async submit(runs) {
    for (let done = 0; done < runs; done += SUBMITTED) {
      await this.boss.insert(name(0), empty(Math.min(SUBMITTED, runs - done)));
    }
  }

  async lone() {
    this.ends.begin();
    await this.boss.send(name(0), {});
    await this.ends.wait();
  }

  async handle(step, jobs) {
    this.steps[step] += jobs.length;
    if (step < STEPS - 1) await this.boss.insert(name(step + 1), empty(jobs.length));
    else this.ends.tell();
  }
}

await serve(new Boss());
