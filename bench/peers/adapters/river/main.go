// river: a queue in Go, its workers woken by NOTIFY; the same roles, requests and answers as process.py.
//
// Setting, from its pages on inserting in bulk and on its client: InsertMany for runs, MaxWorkers of 100, its completer in
// batches, a FetchCooldown of 1 ms, since the default of 100 ms would be most of a lone run.
//
// It has no workflows without its paid part: the worker of a step inserts the next job before it returns. (It can do that
// and complete the job in one transaction, which gives up the batches of its completer.) The end of a lone run is taken as
// known when its last worker ran, which is before it is recorded.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	steps     = 3
	workers   = 100
	pool      = 20
	submitted = 500
	cooldown  = time.Millisecond
	patience  = 30 * time.Second
	queue     = "a step's end and the next step's start are not atomic"
	open      = "SELECT EXISTS (SELECT FROM river_job WHERE state NOT IN ('completed', 'cancelled', 'discarded'))"
	finished  = "SELECT count(*) FROM river_job WHERE state = 'completed' AND (args ->> 'number')::int = 2"
)

// Version is set when the program is built.
var Version = "unknown"

type step struct {
	Number int `json:"number"`
}

func (step) Kind() string { return "step" }

type worker struct {
	river.WorkerDefaults[step]
	counts [steps]atomic.Int64
	ended  chan struct{}
}

func (w *worker) Work(ctx context.Context, job *river.Job[step]) error {
	number := job.Args.Number
	w.counts[number].Add(1)
	if number < steps-1 {
		_, err := river.ClientFromContext[pgx.Tx](ctx).Insert(ctx, step{number + 1}, nil)
		return err
	}
	select {
	case w.ended <- struct{}{}:
	default:
	}
	return nil
}

type request struct {
	Do   string `json:"do"`
	Runs int    `json:"runs"`
}

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, role string) error {
	config, err := pgxpool.ParseConfig(os.Getenv("PEER_URL"))
	if err != nil {
		return err
	}
	config.MaxConns = pool
	db, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer db.Close()
	if role == "set-up" {
		return setUp(ctx, db)
	}
	doing := &worker{ended: make(chan struct{}, 1)}
	client, err := newClient(db, role, doing)
	if err != nil {
		return err
	}
	if role != "submit" {
		if err := client.Start(ctx); err != nil {
			return err
		}
		defer client.Stop(ctx)
	}
	answer(about())
	return serve(ctx, client, doing)
}

func setUp(ctx context.Context, db *pgxpool.Pool) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(db), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	answer(about())
	return nil
}

func newClient(db *pgxpool.Pool, role string, doing *worker) (*river.Client[pgx.Tx], error) {
	config := &river.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	if role != "submit" {
		config.Workers = river.NewWorkers()
		river.AddWorker(config.Workers, doing)
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}
		config.FetchCooldown = cooldown
	}
	return river.NewClient(riverpgxv5.New(db), config)
}

func serve(ctx context.Context, client *river.Client[pgx.Tx], doing *worker) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		switch asked.Do {
		case "submit":
			if err := submit(ctx, client, asked.Runs); err != nil {
				return err
			}
			answer(map[string]any{"submitted": asked.Runs})
		case "lone":
			milliseconds, err := lone(ctx, client, doing, asked.Runs)
			if err != nil {
				return err
			}
			answer(map[string]any{"milliseconds": milliseconds})
		default:
			counts := make([]int64, steps)
			for number := range counts {
				counts[number] = doing.counts[number].Load()
			}
			answer(map[string]any{"steps": counts})
		}
	}
	return lines.Err()
}

func submit(ctx context.Context, client *river.Client[pgx.Tx], runs int) error {
	for done := 0; done < runs; done += submitted {
		batch := make([]river.InsertManyParams, min(submitted, runs-done))
		for number := range batch {
			batch[number].Args = step{0}
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

func lone(ctx context.Context, client *river.Client[pgx.Tx], doing *worker, runs int) ([]float64, error) {
	milliseconds := make([]float64, 0, runs)
	for range runs {
		begun := time.Now()
		if _, err := client.Insert(ctx, step{0}, nil); err != nil {
			return nil, err
		}
		select {
		case <-doing.ended:
		case <-time.After(patience):
			return nil, fmt.Errorf("a lone run has not ended")
		}
		milliseconds = append(milliseconds, float64(time.Since(begun).Microseconds())/1e3)
	}
	return milliseconds, nil
}

func about() map[string]any {
	setting := map[string]any{"max_workers": workers, "connections": pool, "inserted_at_once": submitted, "cooldown_ms": 1}
	return map[string]any{
		"ready": true, "version": Version, "setting": setting, "steps": queue, "open": open, "finished": finished,
	}
}

func answer(content map[string]any) {
	line, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}
