// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/rm"
)

// BenchmarkLongLists measures a list of 10,000 applications over three members at a router, beside the slowest member's
// own part. The members are three of creel's, two of creel's and one of Hadoop's, or three of Hadoop's. One caller
// requests one list at a time, by turns from the router and from each member. The third turn requests from all members
// at once with one caller each: the time of the whole list without a router. With members of creel's only, one of
// creel's ResourceManagers with all 10,000 takes a turn, too.
func BenchmarkLongLists(b *testing.B) {
	const applications, members = 10_000, 3
	for _, theirs := range []int{0, 1, 3} {
		b.Run(fmt.Sprintf("%d-of-Hadoop", theirs), func(b *testing.B) {
			f := Start(b, Options{
				NoNodes: true, Subclusters: max(1, members-theirs), Routers: 1,
				Conf: hadoop.Conf{"creel.membership.lease": "60s"},
			})
			in := f.Subclusters[:members-theirs] // where all are Hadoop's, ours has no applications
			for i := range theirs {
				in = append(in[:len(in):len(in)], f.StartHadoop(b, members-i+1))
			}
			AwaitActive(b, f.RouterAddresses[0].Web, max(members, theirs+1))
			submit := func(at hadoop.Addresses, count int) {
				mustLoad(b, "submit", "--client", at.Client, "--unmanaged", "--in-flight", "16",
					"--count", strconv.Itoa(count), "--duration", "1h", "--user", hadoop.OSUser(b))
			}
			for _, s := range in {
				submit(s.Addresses, applications/members)
			}
			asked := append([]hadoop.Addresses{f.RouterAddresses[0]}, addresses(in)...)
			if theirs == 0 {
				one := rm.Start(b, rm.Options{Conf: hadoop.Conf{"yarn.scheduler.capacity.maximum-applications": "100000"}})
				submit(one.Addresses, applications)
				asked = append(asked, one.Addresses)
			}
			for _, call := range []struct {
				name string
				args func(hadoop.Addresses) []string
			}{
				{"rest", func(a hadoop.Addresses) []string {
					return []string{"rest", "http://" + a.Web + "/ws/v1/cluster/apps", "--connections", "1"}
				}},
				{"rpc", func(a hadoop.Addresses) []string {
					return []string{"report", "--client", a.Client, "--call", "list", "--applications", "1", "--in-flight", "1"}
				}},
			} {
				b.Run(call.name, func(b *testing.B) {
					const turns = 3
					turn := func(of ...hadoop.Addresses) (slowest float64) {
						var each [][]string
						for _, a := range of {
							each = append(each, append(call.args(a), "--warmup", "2s", "--duration", "6s"))
						}
						for i, r := range loads(b, each...) {
							if r.Failed > 0 {
								b.Fatalf("creel load %v: %d calls failed", each[i], r.Failed)
							}
							slowest = max(slowest, r.Latency.P50)
						}
						return slowest
					}
					// Of each the least of the turns: the last ones are warm.
					times := make([]float64, len(asked))
					together := math.Inf(1)
					for i := range times {
						times[i] = math.Inf(1)
					}
					for b.Loop() {
						for range turns {
							for i, a := range asked {
								times[i] = min(times[i], turn(a))
							}
							together = min(together, turn(asked[1:1+members]...))
						}
					}
					slowest := slices.Max(times[1 : 1+members])
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(times[0], "router-p50-ms")
					b.ReportMetric(slowest, "slowest-member-p50-ms")
					b.ReportMetric(together, "members-together-p50-ms")
					b.ReportMetric(times[0]/slowest, "x")
					if theirs == 0 {
						b.ReportMetric(times[1+members], "one-with-all-p50-ms")
						b.ReportMetric(times[0]/times[1+members], "x-one-with-all")
					}
				})
			}
		})
	}
}

func addresses(of []*Subcluster) (out []hadoop.Addresses) {
	for _, s := range of {
		out = append(out, s.Addresses)
	}
	return out
}

// mustLoad runs `creel load`. No call may fail.
func mustLoad(b *testing.B, args ...string) loadResult {
	b.Helper()
	out := load(b, args...)
	if out.Failed > 0 {
		b.Fatalf("creel load %v: %d calls failed", args, out.Failed)
	}
	return out
}
