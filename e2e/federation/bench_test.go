// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/rm"
)

// loadResult is the summary that `creel load` prints.
type loadResult struct {
	PerSecond float64 `json:"per_second"`
	Failed    int     `json:"failed"`
	Latency   struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
	} `json:"latency_ms"`
	Containers struct {
		PerSecond float64 `json:"per_second"`
	} `json:"containers"`
}

// BenchmarkProxy compares allocate calls to the ResourceManager with the same calls through the proxy. All are
// processes of their own. 10 and 1,000 AMs request ten containers a call and release them. The application is at home
// only, or spread over two subclusters. "open" offers both the same load: 10 AMs make 200 calls a second, 1,000 AMs one
// call each. "closed" calls as fast as responses arrive. On one machine that rate depends on the processor time left by
// one more process. The control is a process that copies bytes: it measures the two hops' part of the added time, and
// of the direct rate. The three take turns; each number is a median.
func BenchmarkProxy(b *testing.B) {
	const turns = 3
	for _, policy := range []string{"home", "balanced"} {
		f := Start(b, Options{NoNodes: true, Routers: 1, Conf: hadoop.Conf{
			"creel.proxy.policy": policy,
			"yarn.scheduler.capacity.maximum-am-resource-percent": "1",
			"yarn.resourcemanager.am.max-attempts":                "1",
		}})
		for i, s := range f.Subclusters {
			if i > 0 { // the first's nodes are the load's own
				start(b, "nm-"+s.ID, "nm", f.common(b, s.Addresses.Conf()),
					"--simulate", "20", "--first", strconv.Itoa(1000*i))
			}
		}
		home := f.Subclusters[0]
		relayed, _ := startRelay(b, home.Addresses.Scheduler)
		ways := []struct{ name, scheduler string }{
			{"direct", home.Addresses.Scheduler},
			{"relay", relayed},
			{"proxy", home.address + ":" + strconv.Itoa(f.proxyPort)},
		}
		for _, ams := range []int{10, 1000} {
			for _, loop := range []string{"open", "closed"} {
				b.Run(fmt.Sprintf("%s/%d-AMs/%s", policy, ams, loop), func(b *testing.B) {
					of := map[string][]float64{}
					for b.Loop() {
						for range turns {
							var direct loadResult
							for _, way := range ways {
								r := loadAlloc(b, home, way.scheduler, ams, loop)
								if r.Failed > 0 {
									b.Fatalf("%s: %d calls failed", way.name, r.Failed)
								}
								add := func(what string, v float64) {
									of[way.name+"-"+what] = append(of[way.name+"-"+what], v)
								}
								add("calls/s", r.PerSecond)
								add("containers/s", r.Containers.PerSecond)
								if way.name == "direct" {
									direct = r
									add("p50-us", 1000*r.Latency.P50)
									add("p99-us", 1000*r.Latency.P99)
									continue
								}
								add("added-p50-us", 1000*(r.Latency.P50-direct.Latency.P50))
								add("added-p99-us", 1000*(r.Latency.P99-direct.Latency.P99))
								add("%of-direct", 100*r.PerSecond/direct.PerSecond)
							}
						}
					}
					b.ReportMetric(0, "ns/op")
					for what, each := range of {
						slices.Sort(each)
						b.ReportMetric(each[len(each)/2], what)
					}
				})
			}
		}
	}
}

func loadAlloc(b *testing.B, home *Subcluster, scheduler string, ams int, loop string) loadResult {
	b.Helper()
	rate := 0 // of containers, ten a call
	if loop == "open" {
		rate = 10 * max(200, ams)
	}
	return load(
		b,
		"alloc",
		"--client",
		home.Addresses.Client,
		"--scheduler",
		scheduler,
		"--tracker",
		home.Addresses.Tracker,
		"--masters",
		strconv.Itoa(ams),
		"--nodes",
		"40",
		"--wave",
		"10",
		"--rate",
		strconv.Itoa(rate),
		"--warmup",
		"1s",
		"--duration",
		"5s",
		"--user",
		hadoop.OSUser(b),
	)
}

// load runs `creel load`, and returns its summary.
func load(b *testing.B, args ...string) loadResult {
	b.Helper()
	return loads(b, args)[0]
}

// loads runs several `creel load` at the same time, and returns their summaries.
func loads(b *testing.B, each ...[]string) []loadResult {
	b.Helper()
	out, told, running := make([]loadResult, len(each)), make([]bytes.Buffer, len(each)), make([]*exec.Cmd, len(each))
	for i, args := range each {
		cmd := exec.CommandContext(b.Context(), rm.Binary(b), append([]string{"load"}, args...)...)
		cmd.Dir, cmd.Stdout = filepath.Dir(rm.Binary(b)), &told[i]
		if err := cmd.Start(); err != nil {
			b.Fatalf("%v: %v", cmd.Args, err)
		}
		running[i] = cmd
	}
	for i, cmd := range running {
		if err := cmd.Wait(); err != nil {
			b.Fatalf("%v: %v\n%s", cmd.Args, err, &told[i])
		}
		if err := json.Unmarshal(told[i].Bytes(), &out[i]); err != nil {
			b.Fatalf("%v\n%s", err, &told[i])
		}
	}
	return out
}
