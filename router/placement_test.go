// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// decision chooses among n members as the default policy does: every third is lost,
// every fourth of the others full.
func decision(n int) policies.Reason {
	members := make([]subcluster.Status, n)
	for i := range members {
		m := &members[i]
		m.ID, m.State = creel.SubclusterID(fmt.Sprintf("subcluster-%02d", i)), subcluster.StateActive
		m.Load.Metrics.TotalMB, m.Load.Metrics.TotalVirtualCores = 1<<20, 512
		m.Load.Metrics.AvailableMB, m.Load.Metrics.AvailableVirtualCores = int64(i+1)*1024, int64(i+1)
		switch {
		case i%3 == 2:
			m.State = subcluster.StateLost
		case i%4 == 3:
			m.Load.Metrics.AvailableMB, m.Load.Metrics.AvailableVirtualCores = 0, 0
		}
	}
	view := subcluster.NewView(time.Time{}, members, nil)
	_, reason, err := policies.Default().Home(view, policies.Submission{
		Queue: "root.prod.etl", Size: creel.NewResource(1024, 1),
	}, nil, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		panic(err)
	}
	return reason
}

func placed(reason policies.Reason) *router.Placement {
	at := time.UnixMilli(1700000000123)
	return &router.Placement{
		User: "alice", Queue: "root.prod.etl", Received: at, Claimed: at.Add(3 * time.Millisecond),
		Tries: []router.PlacementTry{{Member: reason.Chosen, Reason: reason}},
	}
}

func decoded(t testing.TB, b []byte) router.Placement {
	t.Helper()
	p, err := router.DecodePlacement(b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// With a few members everything is stored, in a few hundred bytes: each candidate with its numbers, the excluded with
// their codes.
func TestSmallPlacementKeepsAllMembers(t *testing.T) {
	reason := decision(6)
	b := placed(reason).Encode()
	p := decoded(t, b)
	t.Logf("%d bytes", len(b))
	if len(b) > 400 || p.User != "alice" || p.Queue != "root.prod.etl" ||
		p.Claimed.Sub(p.Received) != 3*time.Millisecond {
		t.Errorf("%d bytes: %+v", len(b), p)
	}
	got := p.Tries[0].Reason
	if got.Policy != "balanced" || got.Chosen != reason.Chosen || got.Because != reason.Because || got.LeftOut != 0 ||
		len(got.Candidates) != 6 {
		t.Fatalf("%+v", got)
	}
	for i, c := range got.Candidates {
		want := reason.Candidates[i]
		if c.Member != want.Member || c.Code != want.Code || float32(c.Score) != float32(want.Score) ||
			!reflect.DeepEqual(c.Numbers, want.Numbers) || (c.Excluded == "") != (want.Excluded == "") {
			t.Errorf("candidate %d: %+v, was %+v", i, c, want)
		}
	}
}

// Numbers keep the label of their nodes.
func TestAPlacementKeepsTheLabelOfItsNodes(t *testing.T) {
	reason := decision(3)
	n := &reason.Candidates[0].Numbers
	n.Of, n.Label, n.Entitled = "label", "gpu", 0.5
	again := decoded(t, placed(reason).Encode()).Tries[0].Reason.Candidates[0].Numbers
	if again.Of != "label" || again.Label != "gpu" || !strings.Contains(again.String(), "nodes of label gpu") {
		t.Errorf("%+v: %s", again, again)
	}
}

// With sixty members the chosen one and the best of the others are stored with their numbers, the excluded ones by
// code, and the number of further ones.
func TestLargePlacementKeepsBestAndExcluded(t *testing.T) {
	reason := decision(60)
	b := placed(reason).Encode()
	t.Logf("%d bytes", len(b))
	got := decoded(t, b).Tries[0].Reason
	in := 0
	for _, c := range reason.Candidates {
		i := slices.IndexFunc(got.Candidates, func(k policies.Candidate) bool { return k.Member == c.Member })
		if c.Code == "" {
			in++
		}
		switch {
		case i < 0:
			t.Errorf("%s, excluded for %q, is not kept", c.Member, c.Code)
		case got.Candidates[i].Code != c.Code:
			t.Errorf("%s has code %q, was %q", c.Member, got.Candidates[i].Code, c.Code)
		}
	}
	if len(b) > 1100 || in != 8 || len(got.Candidates) != 38 || got.LeftOut != 22 {
		t.Errorf("%d bytes; of %d, %d that were in are told, %d are left out", len(b), len(got.Candidates), in, got.LeftOut)
	}
	for _, id := range []creel.SubclusterID{reason.Chosen, "subcluster-58"} { // the best, of those in
		i := slices.IndexFunc(got.Candidates, func(k policies.Candidate) bool { return k.Member == id })
		if i < 0 || got.Candidates[i].Numbers.IsZero() {
			t.Errorf("%s is not kept with its numbers", id)
		}
	}
}

// Whatever names and texts there are, a placement fits into the store and reads back with the deciding values.
func TestEveryPlacementFitsAndIsReadBack(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		text := func(most int) *rapid.Generator[string] { return rapid.StringN(0, most, 4*most) }
		id := rapid.Custom(func(t *rapid.T) creel.SubclusterID {
			return creel.SubclusterID(rapid.StringMatching(`[a-z][a-z0-9-]{0,99}`).Draw(t, "id"))
		})
		p := router.Placement{
			User: text(300).Draw(t, "user"), Queue: creel.QueuePath(text(300).Draw(t, "queue")),
			Received: time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "received")),
		}
		p.Claimed = p.Received.Add(time.Duration(rapid.IntRange(-1000, 1000).Draw(t, "later")) * time.Millisecond)
		for range rapid.IntRange(1, 8).Draw(t, "tries") {
			r := policies.Reason{
				Policy: "balanced", Version: rapid.Int64().Draw(t, "version"), Because: text(500).Draw(t, "because"),
			}
			for range rapid.IntRange(1, 100).Draw(t, "candidates") {
				c := policies.Candidate{Member: id.Draw(t, "member"), Score: rapid.Float64().Draw(t, "score")}
				if rapid.Bool().Draw(t, "out") {
					c.Code = rapid.SampledFrom([]policies.Exclusion{"lost", policies.ExcludedFull}).Draw(t, "code")
				}
				if rapid.Bool().Draw(t, "numbers") {
					c.Numbers = policies.Numbers{
						Of:   "queue",
						Free: creel.NewResource(rapid.Int64().Draw(t, "free"), 1, creel.Amount{Name: "gpu", Value: 4}),
					}
				}
				r.Candidates = append(r.Candidates, c)
			}
			r.Chosen = r.Candidates[0].Member
			r.Candidates[0].Code = ""
			p.Tries = append(
				p.Tries,
				router.PlacementTry{Member: r.Chosen, Verdict: "refused", Err: text(500).Draw(t, "error"), Reason: r},
			)
		}
		b := p.Encode()
		if len(b) > statestore.MaxPlacement {
			t.Fatalf("%d bytes", len(b))
		}
		got, err := router.DecodePlacement(b)
		if err != nil {
			t.Fatal(err)
		}
		was, is := p.Tries[len(p.Tries)-1], got.Tries[len(got.Tries)-1]
		if is.Member != was.Member || is.Reason.Chosen != was.Reason.Chosen || is.Reason.Version != was.Reason.Version ||
			!got.Received.Equal(p.Received) ||
			!got.Claimed.Equal(p.Claimed) ||
			len(is.Reason.Candidates)+is.Reason.LeftOut != len(was.Reason.Candidates) ||
			len(p.User) <= 256 && strings.ToValidUTF8(p.User, "") == p.User && got.User != p.User {
			t.Fatalf("written %+v, read %+v", was, is)
		}
	})
}

// Bytes of another program are rejected, and never read as another decision.
func FuzzPlacement(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add(placed(decision(3)).Encode())
	f.Add(placed(decision(60)).Encode())
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := router.DecodePlacement(b)
		if err != nil {
			if !errors.Is(err, creel.ErrInvalidRequest) {
				t.Fatal(err)
			}
			return
		}
		if len(b) <= statestore.MaxPlacement {
			_ = decoded(t, p.Encode())
		}
	})
}

// BenchmarkPlacement measures the cost for a submission of writing why its home was chosen.
func BenchmarkPlacement(b *testing.B) {
	for _, n := range []int{3, 60} {
		p := placed(decision(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			var size int
			for b.Loop() {
				size = len(p.Encode())
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
