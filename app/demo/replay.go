// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/app/load"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/workload"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore"
	nmserver "github.com/creelrm/creel/subcluster/nm/server"
	"github.com/creelrm/creel/subcluster/rm"
)

// jobKey is the environment variable with a simulated AM's job number.
const jobKey = "CREEL_JOB"

// replay submits the jobs of a day and simulates their AMs.
type replay struct {
	documents statestore.Documents // of the federation

	opportunistic float64 // fraction of tasks

	jobs      []workload.Job
	durations *workload.Durations
	client    *hrpc.Client
	nodes     int                      // of each subcluster
	before    int64                    // applications that ended before
	schedule  atomic.Pointer[[]string] // the proxies' addresses, by subcluster

	ams    sync.WaitGroup
	ctx    context.Context // of the AMs
	cancel context.CancelFunc

	mu       sync.Mutex
	runs     map[creel.ApplicationID]int // AMs that completed their job
	plays    map[creel.AttemptID]*load.AM
	granted  map[creel.SubclusterID]int64
	waits    *hdrhistogram.Histogram // us from ask to grant
	submits  *hdrhistogram.Histogram // us from a submission's due time
	accepted []creel.ApplicationID
	troubles []string // the first few failures of AMs

	playing, submitting atomic.Int64
	grants              atomic.Int64
}

func newReplay(jobs []workload.Job, d *workload.Durations) *replay {
	r := &replay{
		jobs:      jobs,
		durations: d,
		client:    hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf, IdleTime: 3 * time.Second}),
		runs:      map[creel.ApplicationID]int{},
		plays:     map[creel.AttemptID]*load.AM{},
		granted:   map[creel.SubclusterID]int64{},
		waits: hdrhistogram.New(
			1,
			int64(10*time.Minute/time.Microsecond),
			3,
		),
		submits: hdrhistogram.New(1, int64(10*time.Minute/time.Microsecond), 3),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// close ends the AMs still running, and waits for them.
func (r *replay) close() {
	r.cancel()
	r.ams.Wait()
	r.client.Close()
}

// onStart handles starts of AM containers: it simulates the job whose number is in the environment, with the token
// from its ResourceManager.
func (r *replay) onStart(s nmserver.Started, exit func(code int32, diagnostic string)) (stop func()) {
	if !s.AM {
		return nil
	}
	at := -1
	for _, e := range s.Launch.GetEnvironment() {
		if e.GetKey() == jobKey {
			at, _ = strconv.Atoi(e.GetValue()) // a value that is no number belongs to another program's container
		}
	}
	addresses := r.schedule.Load()
	epoch := int(s.Container.Epoch()/1000) - 1
	if at < 0 || at >= len(r.jobs) || addresses == nil || epoch < 0 || epoch >= len(*addresses) {
		return nil
	}
	creds, err := token.ParseCredentials(s.Launch.GetTokens())
	amrm, ok := creds.OfKind(token.KindAMRM)
	if err != nil || !ok {
		exit(1, "no AMRM token in the launch context")
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.ctx)
	m := &load.AM{
		Client:    r.client,
		Scheduler: (*addresses)[epoch],
		Attempt:   s.Container.Attempt,
		Token:     amrm,
		Play: workload.NewAM(
			r.jobs[at],
			workload.DefaultAMConfig(),
			r.durations,
		),
		Heartbeat:     50 * time.Millisecond,
		Opportunistic: r.opportunistic,
		Observe:       r.observe,
	}
	r.mu.Lock()
	r.plays[m.Attempt] = m
	r.mu.Unlock()
	r.playing.Add(1)
	r.ams.Go(func() {
		defer cancel()
		defer func() {
			r.mu.Lock()
			delete(r.plays, m.Attempt)
			r.mu.Unlock()
			r.playing.Add(-1)
		}()
		if err := m.Run(ctx); err != nil {
			if ctx.Err() == nil {
				r.trouble(err)
			}
			exit(1, err.Error())
			return
		}
		r.mu.Lock()
		r.runs[s.Container.Attempt.Application]++
		r.mu.Unlock()
		exit(0, "")
	})
	return cancel
}

func (r *replay) trouble(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.troubles) < 20 {
		r.troubles = append(r.troubles, err.Error())
	}
}

func (r *replay) observe(o load.Observation) {
	r.grants.Add(1)
	sub := creel.SubclusterID(fmt.Sprintf("sc-%d", o.Container.Epoch()/1000))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.granted[sub]++
	r.waits.RecordValue(min(o.Waited.Microseconds(), r.waits.HighestTrackableValue())) // always within range
}

// submitter submits a job over REST, like a user's script: a new id, the submission, and the same at the other router
// until one accepts it.
type submitter struct {
	http    *http.Client
	routers []string
	// am returns the environment variable with the AM's job number.
	am func(j workload.Job, at int) (key, value string)
}

func newSubmitter(routers []string, am func(j workload.Job, at int) (key, value string)) *submitter {
	return &submitter{
		http:    &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second},
		routers: routers, am: am,
	}
}

// submitAll submits the jobs at their times and reports each outcome, from separate goroutines. It returns when all
// outcomes have been reported, or ctx has ended.
func (s *submitter) submitAll(ctx context.Context, jobs []workload.Job, began time.Time,
	tell func(id creel.ApplicationID, due time.Time, err error)) {
	limit := make(chan struct{}, 256)
	var work sync.WaitGroup
	defer work.Wait()
	for i, j := range jobs {
		due := began.Add(j.Submit)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		limit <- struct{}{}
		work.Go(func() {
			defer func() { <-limit }()
			one, cancel := context.WithTimeout(ctx, 90*time.Second)
			defer cancel()
			id, err := s.submit(one, j, i)
			tell(id, due, err)
		})
	}
}

func (s *submitter) post(ctx context.Context, router, path string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+router+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, answer, err
}

// submit returns the id with which a router accepted the job.
func (s *submitter) submit(ctx context.Context, j workload.Job, at int) (creel.ApplicationID, error) {
	var id string
	var last error
	for try := 0; ; try++ {
		router := s.routers[(at+try)%len(s.routers)]
		if id == "" {
			var fresh struct {
				ID string `json:"application-id"`
			}
			status, b, err := s.post(ctx, router, "/ws/v1/cluster/apps/new-application?user.name="+j.User, nil)
			if err == nil && status == http.StatusOK {
				err = json.Unmarshal(b, &fresh)
			} else if err == nil {
				err = fmt.Errorf("new-application answered %d: %.200s", status, b)
			}
			if last = err; err == nil {
				id = fresh.ID
			}
		}
		if id != "" {
			key, value := s.am(j, at)
			doc, err := json.Marshal(
				map[string]any{
					"application-id":   id,
					"application-name": j.Name,
					"queue":            string(j.Queue),
					"application-type": "MAPREDUCE",
					"resource":         map[string]int{"memory": 512, "vCores": 1},
					"am-container-spec": map[string]any{
						"commands": map[string]string{"command": "master"},
						"environment": map[string]any{
							"entry": []map[string]string{{"key": key, "value": value}},
						},
					},
				},
			)
			if err != nil {
				return creel.ApplicationID{}, err
			}
			status, b, err := s.post(ctx, router, "/ws/v1/cluster/apps?user.name="+j.User, doc)
			switch {
			case err != nil:
				last = err
			case status == http.StatusAccepted:
				return creel.ParseApplicationID(id)
			case status < 500:
				return creel.ApplicationID{}, fmt.Errorf("submission answered %d: %.300s", status, b)
			default:
				last = fmt.Errorf("submission answered %d: %.300s", status, b)
			}
		}
		select {
		case <-ctx.Done():
			return creel.ApplicationID{}, fmt.Errorf("%s was not accepted: %w", j.Name, errors.Join(ctx.Err(), last))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// play submits all jobs of the day at their times and waits until each has ended.
func (r *replay) play(ctx context.Context, fed *federation.Federation, c *Config, said io.Writer) (*Summary, error) {
	audit := newAuditor(fed, r.documents)
	audit.also = c.broken
	return r.playAll(ctx, fed, c, audit, c.Faults, said)
}

// playSteady does the same with the jobs of the steady part. Its audit starts after a third of it, when all resources
// are in use and queues wait, and ends at the last submission.
func (r *replay) playSteady(ctx context.Context, fed *federation.Federation, c *Config,
	said io.Writer) (*Summary, error) {
	audit := newAuditor(fed, r.documents)
	audit.also = c.broken
	audit.from = time.Now().Add(c.Day.Steady / 3)
	audit.to = time.Now().Add(c.Day.Steady)
	return r.playAll(ctx, fed, c, audit, false, said)
}

func (r *replay) playAll(ctx context.Context, fed *federation.Federation, c *Config, audit *auditor, faults bool,
	said io.Writer) (*Summary, error) {
	out := &screen{out: said, terminal: c.Terminal}
	var proxies []string
	for _, p := range fed.Proxies {
		proxies = append(proxies, p.Address("proxy"))
	}
	r.schedule.Store(&proxies)
	var routers []string
	for _, router := range fed.Routers {
		routers = append(routers, router.Address("web"))
	}
	sub := newSubmitter(routers, func(_ workload.Job, at int) (string, string) { return jobKey, strconv.Itoa(at) })
	defer sub.http.CloseIdleConnections()
	r.nodes = c.Day.Nodes
	began := time.Now()
	var work sync.WaitGroup
	playCtx, endPlay := context.WithCancel(ctx)
	defer endPlay()
	errs := make(chan error, 1)
	r.submitting.Store(int64(len(r.jobs)))
	work.Go(func() {
		sub.submitAll(playCtx, r.jobs, began, func(id creel.ApplicationID, due time.Time, err error) {
			defer r.submitting.Add(-1)
			r.mu.Lock()
			defer r.mu.Unlock()
			if err != nil {
				if len(r.troubles) < 20 {
					r.troubles = append(r.troubles, err.Error())
				}
				return
			}
			r.accepted = append(r.accepted, id)
			r.submits.RecordValue(
				min(time.Since(due).Microseconds(), r.submits.HighestTrackableValue()),
			) // always within range
		})
	})
	if faults {
		last := r.jobs[len(r.jobs)-1].Submit
		work.Go(func() {
			if err := runFaults(playCtx, fed, began, last, out); err != nil && playCtx.Err() == nil {
				select {
				case errs <- err:
				default:
				}
			}
		})
	}
	err := r.follow(ctx, fed, audit, began, out, errs)
	endPlay()
	work.Wait()
	out.done()
	if err != nil {
		return nil, err
	}
	return r.summarise(ctx, fed, audit, began, out)
}

// follow shows progress until all has ended, nothing changes any more, or ctx ends.
func (r *replay) follow(
	ctx context.Context,
	fed *federation.Federation,
	audit *auditor,
	began time.Time,
	out *screen,
	errs <-chan error,
) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before int64
	moved := time.Now()
	var mark [3]int64
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-fed.Failed():
			return err
		case err := <-errs:
			return err
		case <-tick.C:
		}
		audit.look(ctx)
		ended, running := audit.ended-r.before, audit.running
		grants := r.grants.Load()
		r.mu.Lock()
		accepted := len(r.accepted)
		r.mu.Unlock()
		out.show(state{
			after: time.Since(began), last: r.jobs[len(r.jobs)-1].Submit, jobs: len(r.jobs),
			accepted: accepted, running: running, ended: ended, containers: grants, lastSeconds: grants - before,
		})
		before = grants
		if r.submitting.Load() == 0 && ended >= int64(accepted) && r.playing.Load() == 0 {
			return nil
		}
		if now := [3]int64{grants, ended, int64(accepted)}; now != mark {
			mark, moved = now, time.Now()
		} else if time.Since(moved) > 90*time.Second {
			fmt.Fprintln(out, "no progress for 90 s: giving up")
			r.mu.Lock()
			for id, m := range r.plays {
				wants, holds, trouble := m.Progress()
				fmt.Fprintf(
					out,
					"still playing: %s wants %d containers and has %d; last trouble: %s\n",
					id,
					wants,
					holds,
					trouble,
				)
			}
			r.mu.Unlock()
			return nil
		}
	}
}

// summarise counts the outcomes of all applications that a router accepted, from the ResourceManagers' reports.
func (r *replay) summarise(
	ctx context.Context,
	fed *federation.Federation,
	audit *auditor,
	began time.Time,
	out io.Writer,
) (*Summary, error) {
	s := &Summary{WallS: time.Since(began).Seconds()}
	type place struct {
		sub   creel.SubclusterID
		state creel.ApplicationState
	}
	found := map[creel.ApplicationID][]place{}
	r.mu.Lock()
	slices.SortFunc(r.accepted, creel.ApplicationID.Compare)
	accepted := slices.Clone(r.accepted)
	r.mu.Unlock()
	for i, daemon := range fed.RMs {
		id := creel.SubclusterID(fmt.Sprintf("sc-%d", i+1))
		sub := SubclusterSummary{ID: id, Nodes: r.nodes}
		err := daemon.Service.Server.Query(ctx, func(m *rm.Machine, _ time.Time) {
			for a := range m.Apps {
				if a.Unmanaged {
					if !a.State.Ended() {
						audit.broke("an unmanaged AM is left over: %s at %s", a.ID, id)
					}
					continue
				}
				if _, ours := slices.BinarySearchFunc(accepted, a.ID, creel.ApplicationID.Compare); ours {
					sub.Applications++
				}
				found[a.ID] = append(found[a.ID], place{id, a.State})
			}
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		r.mu.Lock()
		sub.Containers = r.granted[id]
		r.mu.Unlock()
		s.Subclusters = append(s.Subclusters, sub)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Applications.Submitted = len(r.accepted)
	for _, id := range r.accepted {
		places := found[id]
		switch {
		case len(places) > 1 || r.runs[id] > 1:
			s.Applications.Doubled++
			fmt.Fprintf(out, "doubled: %s at %v, played to its end %d times\n", id, places, r.runs[id])
		case len(places) == 0 || !places[0].state.Ended():
			s.Applications.Lost++
			fmt.Fprintf(out, "lost: %s %v\n", id, places)
		case places[0].state == creel.AppFinished:
			s.Applications.Finished++
		default:
			s.Applications.Failed++
		}
	}
	if missed := len(r.jobs) - len(r.accepted); missed > 0 {
		fmt.Fprintf(out, "%d jobs were not accepted by any router\n", missed)
		s.Applications.Submitted += missed
		s.Applications.Lost += missed
	}
	for _, t := range r.troubles {
		fmt.Fprintln(out, "trouble:", t)
	}
	s.Containers.Granted = r.grants.Load()
	s.Containers.PerSecond = float64(s.Containers.Granted) / s.WallS
	ms := func(h *hdrhistogram.Histogram, q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	s.GrantMS = Quantiles{ms(r.waits, 50), ms(r.waits, 99), float64(r.waits.Max()) / 1000}
	s.SubmitMS.P50, s.SubmitMS.P99 = ms(r.submits, 50), ms(r.submits, 99)
	audit.fill(s, out)
	return s, nil
}
