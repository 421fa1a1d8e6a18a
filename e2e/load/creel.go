// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
)

// daemon is a process of the creel binary.
type daemon struct {
	*process.Process
	args   []string
	dir    string
	starts int
	// Addresses are the addresses in its ready file.
	Addresses map[string]string
}

// startDaemon runs "creel ROLE" on a configuration and waits until it serves.
func startDaemon(t testing.TB, role string, conf hadoop.Conf, args ...string) *daemon {
	t.Helper()
	d := &daemon{dir: t.TempDir()}
	conf.Write(t, filepath.Join(d.dir, "conf"))
	d.args = append([]string{rm.Binary(t), role, "--conf", filepath.Join(d.dir, "conf")}, args...)
	d.start(t)
	t.Cleanup(func() { d.End(t) })
	return d
}

// start starts or restarts it, and returns the time until its ready file.
func (d *daemon) start(t testing.TB) time.Duration {
	t.Helper()
	d.starts++
	ready := filepath.Join(d.dir, "ready."+strconv.Itoa(d.starts))
	began := time.Now()
	d.Process = process.Spawn(
		t,
		process.Command{
			Name: "creel " + d.args[1],
			Dir:  d.dir,
			Args: append(d.args[:len(d.args):len(d.args)], "--ready-file", ready),
		},
	)
	type entry struct{ Addresses map[string]string }
	var all []entry // addresses of a federation's daemons; the first is a router's
	d.Await(t, "the ready file", func() bool {
		b, err := os.ReadFile(ready)
		if err != nil {
			return false
		}
		var one entry
		if json.Unmarshal(b, &one) == nil {
			all = []entry{one}
			return true
		}
		return json.Unmarshal(b, &all) == nil && len(all) > 0
	})
	d.Addresses = all[0].Addresses
	return time.Since(began)
}

// result is the output of creel load, in its form for scripts.
type result struct {
	Kind      string           `json:"kind"`
	Answered  int64            `json:"answered"`
	Unsent    int64            `json:"unsent"`
	Failed    int64            `json:"failed"`
	Failures  map[string]int64 `json:"failures"`
	PerSecond float64          `json:"per_second"`
	Latency   latency          `json:"latency_ms"`
	Generator struct {
		CPUSeconds float64 `json:"cpu_s"`
		Cores      float64 `json:"cores"`
		CPUMicros  float64 `json:"cpu_us_each"`
		LagP99     float64 `json:"lag_p99_ms"`
	} `json:"generator"`
	Servers []struct {
		Cores      float64 `json:"cores"`
		CPUMicros  float64 `json:"cpu_us_each"`
		ResidentMB float64 `json:"resident_mb"`
	} `json:"servers"`
	Nodes *struct {
		Nodes      int64 `json:"nodes"`
		Registered int64 `json:"registered"`
		Resyncs    int64 `json:"resyncs"`
		Held       bool  `json:"held"`
	} `json:"nodes"`
	Containers *struct {
		Granted        int64   `json:"granted"`
		Released       int64   `json:"released"`
		PerSecond      float64 `json:"per_second"`
		Grant          latency `json:"grant_ms"`
		CPUMicros      float64 `json:"server_cpu_us_each"`
		NodeHeartbeats latency `json:"node_beat_ms"`
		HeartbeatsLost int64   `json:"node_beats_failed"`
	} `json:"containers"`
	REST *struct {
		BytesEach float64 `json:"bytes_each"`
	} `json:"rest"`
}

type latency struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// load runs "creel load ARGS..." to its end.
func load(ctx context.Context, t testing.TB, args ...string) (r result, code int, message string) {
	t.Helper()
	c := exec.CommandContext(ctx, rm.Binary(t), append([]string{"load"}, args...)...)
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	err := c.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("creel load %v printed what is not JSON: %v\n%s", args, err, out.String())
		}
	}
	return r, c.ProcessState.ExitCode(), stderr.String()
}

// mustLoad runs a load whose requests must all succeed.
func mustLoad(t testing.TB, args ...string) result {
	t.Helper()
	r, code, message := load(t.Context(), t, args...)
	if code != 0 {
		t.Fatalf("creel load %v ended with %d: %s%v", args, code, message, r.Failures)
	}
	return r
}

// queues accepts any load.
func queues() hadoop.Conf {
	return hadoop.Conf{
		"yarn.scheduler.capacity.root.queues":                              "default",
		"yarn.scheduler.capacity.root.default.capacity":                    "100",
		"yarn.scheduler.capacity.root.default.user-limit-factor":           "100",
		"yarn.scheduler.capacity.maximum-am-resource-percent":              "1.0",
		"yarn.scheduler.capacity.maximum-applications":                     "1000000",
		"yarn.scheduler.capacity.root.default.maximum-am-resource-percent": "1.0",
		// the same as in the kit's Hadoop
		"yarn.scheduler.capacity.node-locality-delay": "0",
		"yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
	}
}

// startRM starts one of creel's ResourceManagers with its journal.
func startRM(t testing.TB, more hadoop.Conf, args ...string) *daemon {
	t.Helper()
	const any = "127.0.0.1:0"
	conf := hadoop.Addresses{
		Client:    any,
		Scheduler: any,
		Tracker:   any,
		Admin:     any,
		Web:       any,
	}.Conf().
		With(queues(), hadoop.Conf{
			"yarn.scheduler.minimum-allocation-mb": "128",
		}, more)
	return startDaemon(t, "rm", conf, append([]string{"--data", t.TempDir()}, args...)...)
}

// fixedPorts returns ports that were free a moment ago. With them clients can reconnect to a daemon after a restart.
func fixedPorts(t testing.TB) hadoop.Conf {
	t.Helper()
	var at [5]string
	for i := range at {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		at[i] = l.Addr().String()
	}
	return hadoop.Addresses{Client: at[0], Scheduler: at[1], Tracker: at[2], Admin: at[3], Web: at[4]}.Conf()
}

// addressFlags are creel load's flags for a server's addresses.
func addressFlags(client, scheduler, tracker string) []string {
	return []string{"--client", client, "--scheduler", scheduler, "--tracker", tracker}
}
