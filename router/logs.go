// SPDX-License-Identifier: Apache-2.0

package router

import (
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// LogsPart is the progress of log aggregation for an application on one member's nodes.
type LogsPart struct {
	Status creel.LogAggregationStatus // 0: not reported by the member
	Used   bool                       // the application has used resources there
	Ended  time.Time                  // end of the application there; zero while it runs
}

// logsLate is the time after an application's end in which a node may still start to aggregate its logs: Hadoop's
// default of yarn.log-aggregation-status.time-out.ms. After that a member reports TIME_OUT.
const logsLate = 10 * time.Minute

// none reports whether no node of a UAM's member has logs. A ResourceManager also reports NOT_START for an
// application that ran on no node: it had no containers, or released them before they started.
func (p *LogsPart) none(now time.Time) bool {
	return p.Status == creel.LogNotStart && (!p.Used || !p.Ended.IsZero() && now.Sub(p.Ended) > logsLate)
}

// JoinLogs returns the status that a single ResourceManager with all nodes of the application's members would report.
// The first part is home's, the others are of the UAMs' members. Members without log aggregation do not count while
// others aggregate logs.
func JoinLogs(parts []LogsPart, now time.Time) creel.LogAggregationStatus {
	var counts [creel.LogRunningWithFailure + 1]int
	all := 0
	for i := range parts {
		p := &parts[i]
		gathers := p.Status > creel.LogDisabled && int(p.Status) < len(counts)
		if gathers && (i == 0 || !p.none(now)) {
			counts[p.Status]++
			all++
		}
	}
	over := counts[creel.LogSucceeded] + counts[creel.LogFailed] + counts[creel.LogTimeOut]
	switch {
	case all == 0:
		return parts[0].Status
	case counts[creel.LogNotStart] == all:
		return creel.LogNotStart
	case counts[creel.LogRunningWithFailure] > 0:
		return creel.LogRunningWithFailure
	case over < all:
		return creel.LogRunning
	case counts[creel.LogFailed] > 0:
		return creel.LogFailed
	case counts[creel.LogTimeOut] > 0:
		return creel.LogTimeOut
	}
	return creel.LogSucceeded
}

// logs joins the members' log aggregation statuses of an application.
func (m *work[V]) logs(rule *Field, values []Weighed[V], from []*object[V]) V {
	parts := make([]LogsPart, len(values))
	for i, v := range values {
		parts[i].Status = creel.ParseLogAggregationStatus(m.Form.Text(v.Value))
		used, _ := m.beside(from[i], rule.Of)
		parts[i].Used = used > 0
		if ended, _ := m.beside(from[i], rule.Ended); ended > 0 {
			parts[i].Ended = time.UnixMilli(int64(ended))
		}
	}
	said, first := JoinLogs(parts, m.Now), m.Form.Text(values[0].Value)
	if said == parts[0].Status {
		return values[0].Value
	}
	prefix := ""
	if strings.HasPrefix(first, "LOG_") {
		prefix = "LOG_"
	}
	return m.Form.MakeText(values[0].Value, prefix+said.String())
}

// beside returns the number in a field of an object, or of an object in it: "outer.inner".
func (m *work[V]) beside(o *object[V], path string) (n float64, ok bool) {
	outer, inner, nested := strings.Cut(path, ".")
	v, ok := o.get(outer)
	if nested && ok {
		v, ok = m.Form.Get(v, inner)
	}
	if !ok {
		return 0, false
	}
	number, ok := m.Form.Number(v)
	return number.Float, ok
}
