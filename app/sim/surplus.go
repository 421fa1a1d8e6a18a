// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// grant is a container that a ResourceManager granted and that no AM has received.
type grant struct {
	app       creel.ApplicationID
	am        *am // of that time
	proxy, rm *host
}

// The causes for which an AM receives no grant. Each of the first four is one fault, or an end. It takes the grants on
// their way, which are at most as many as their AM asks for.
const (
	causeAM      = "AM ended"
	causeProxy   = "proxy ended"
	causeRM      = "ResourceManager ended"
	causeEnd     = "application or UAM ended"
	causeSurplus = "released by the proxy" // the AM does not ask for it any more
	causeMaximum = "refused above a maximum"
	causeNone    = "another cause"
)

// leaves records the grants of an answer.
func (a *auditor) leaves(c *cluster, r *rm.Answer) {
	for i := range r.Granted {
		id := r.Granted[i].ID
		if m := a.apps[id.Attempt.Application].am; m != nil {
			a.onWay[id] = grant{id.Attempt.Application, m, m.proxy().host, c.host}
		}
	}
}

// arrives records a grant that an AM received.
func (t *transit) arrives(id creel.ContainerID) {
	t.told++
	delete(t.onWay, id)
	delete(t.lost, id)
}

// loses records the cause that keeps grants on their way from their AMs. Some may arrive nevertheless.
func (t *transit) loses(cause string, which func(grant) bool) {
	lost := map[*am][]creel.ContainerID{}
	for id, g := range t.onWay {
		if which(g) {
			lost[g.am] = append(lost[g.am], id)
		}
	}
	for m, ids := range lost {
		slices.SortFunc(ids, creel.ContainerID.Compare)
		for _, id := range ids[:min(len(ids), m.asks())] {
			t.lost[id] = cause
			delete(t.onWay, id)
		}
	}
}

// asks returns the number of containers that an AM waits for.
func (m *am) asks() (n int) {
	for _, times := range m.asked {
		n += len(times)
	}
	return n
}

// hostEnds records the end of a proxy or a ResourceManager, or its replacement by another process.
func (t *transit) hostEnds(h *host) {
	t.loses(causeProxy, func(g grant) bool { return g.proxy == h })
	t.loses(causeRM, func(g grant) bool { return g.rm == h })
}

// proxyReleases records grants that a proxy releases before its AM has received them.
func (t *transit) proxyReleases(req *pb.AllocateRequestProto) {
	for _, p := range req.GetRelease() {
		if id := pb.ToContainerID(p); t.onWay[id].am != nil {
			t.lost[id] = causeSurplus
			delete(t.onWay, id)
		}
	}
}

// unreceived counts the grants that no AM received, by cause.
func (t *transit) unreceived() map[string]int64 {
	out := map[string]int64{}
	all := t.granted - t.told
	for cause, n := range t.forgotten {
		out[cause] += n
		all -= n
	}
	for _, cause := range t.lost {
		out[cause]++
		all--
	}
	if all != 0 {
		out[causeNone] = all
	}
	return out
}

// forget drops the grants of applications that do nothing any more, and keeps their numbers.
func (t *transit) forget(over map[creel.ApplicationID]bool) {
	maps.DeleteFunc(t.onWay, func(_ creel.ContainerID, g grant) bool { return over[g.app] })
	for id, cause := range t.lost {
		if over[id.Attempt.Application] {
			t.forgotten[cause]++
			delete(t.lost, id)
		}
	}
}

// surplus checks that the grants of ResourceManagers reach AMs. A process that ends takes the grants on their way with
// it, without limit: AMs of large jobs ask for hundreds of containers at once. The other grants are limited. A fault,
// or an ask moved because of a fault, may cause some. Without faults there are none, unless the split moves asks from
// full members. The check detects asks that are repeated while their grants are in flight.
func (a *auditor) surplus() {
	most := int64(0)
	switch {
	case a.w.cfg.Faults != nil:
		most = a.granted/10 + 50
	case a.w.cfg.Split != ByHeadroom:
		most = a.granted/50 + 1
	}
	causes := a.unreceived()
	n := causes[causeSurplus] + causes[causeNone]
	a.check(n <= most, "of %d granted containers %d were not received, and no end of a process explains %d of them: %s",
		a.granted, a.granted-a.told, n, Counts(causes))
}

// Counts is a text of counts, sorted by name.
func Counts(n map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%d %s", n[name], name))
	}
	return strings.Join(parts, ", ")
}
