// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Where the store keeps the documents of this package (statestore.Documents).
const (
	TreeClass   = "queues" // the federation's queue tree
	TreeName    = "federation"
	PlanClass   = subcluster.PlanClass
	PlanName    = subcluster.PlanName
	EscrowClass = "escrow"       // a record for each queue with a maximum, by path
	UsersClass  = "escrow-users" // a record for each queue with a user limit, by path
)

// Tree is what holds for queues in the federation as a whole, as its document
// in the store says. Queues that it does not name have what their members'
// files give them, summed.
type Tree struct {
	Version int64   // of the document, 0 without one
	Queues  []Queue // by path
}

// Queue is what the document says of one.
type Queue struct {
	Path creel.QueuePath
	// Guarantee replaces the sum of the members' guarantees; zero keeps it.
	Guarantee creel.Resource
	// Weight by which the queue takes what is beyond guarantees; 0 means by
	// guarantee.
	Weight float64
	// Maximum is what the queue may use in all members together, kept by escrow;
	// zero for none. Types that the document leaves out have Unbounded.
	Maximum creel.Resource
	// UserLimit is what one user may use in all members together, of a queue that has no
	// children; zero for no limit. It is kept by escrow (escrow.Users); otherwise as Maximum.
	UserLimit        creel.Resource
	UserLimitPercent float64
	// GuaranteePercent and MaximumPercent say that the amounts above are so much of
	// what the federation has; 0: they are absolute. Who writes the document puts the
	// amounts in (Resolve), and the rebalancer when the federation grows or shrinks.
	GuaranteePercent, MaximumPercent float64
	// Preemption is the most that may be taken back from others for this queue in all
	// members together, in each PreemptionEvery of the store's clock; zero for no bound.
	// Types that the document leaves out have Unbounded. PreemptionPercent is as
	// GuaranteePercent.
	Preemption        creel.Resource
	PreemptionPercent float64
	PreemptionEvery   time.Duration
	// Optout: routers, proxies and escrow do not follow the plan for this queue.
	Optout bool
}

// Unbounded stands for the amount of a type that a maximum does not name. Sums
// of a few thousand of them do not overflow.
const Unbounded = math.MaxInt64 >> 16

// Bounded reports whether the queue has a maximum.
func (q *Queue) Bounded() bool { return !q.Maximum.IsZero() }

// UserLimited reports whether each user of the queue has a limit.
func (q *Queue) UserLimited() bool { return !q.UserLimit.IsZero() }

// Find gives what the document says of a queue, nil for nothing.
func (t *Tree) Find(q creel.QueuePath) *Queue {
	i, ok := slices.BinarySearchFunc(
		t.Queues,
		q,
		func(e Queue, q creel.QueuePath) int { return cmp.Compare(e.Path, q) },
	)
	if !ok {
		return nil
	}
	return &t.Queues[i]
}

type treeJSON struct {
	Queues []queueJSON `json:"queues"`
}

type queueJSON struct {
	Queue     string          `json:"queue"`
	Guarantee json.RawMessage `json:"guarantee,omitempty"`
	Weight    *float64        `json:"weight,omitempty"`
	Maximum   json.RawMessage `json:"maximum,omitempty"`
	UserLimit json.RawMessage `json:"user_limit,omitempty"`
	// Preemption is what may be taken back for it in PreemptionSeconds [60].
	Preemption        json.RawMessage `json:"preemption,omitempty"`
	PreemptionSeconds int64           `json:"preemption_seconds,omitempty"`
	Optout            bool            `json:"optout,omitempty"`
}

// ParseTree reads the document:
//
//	{"queues": [{"queue": "root.research", "weight": 2,
//	  "guarantee": {"memory": 1048576, "vCores": 256},
//	  "maximum": {"memory": 4194304}}]}
//
// "user_limit" bounds each user of the queue, "preemption" is taken back from others for the queue (see
// GivePreemption). Memory is in MB; further types go by their name. "40%", or {"percent": 40} with
// the amounts that it was when the document was written, is a part of the federation.
// Unknown keys, amounts below zero and queues named twice are refused.
func ParseTree(data []byte, version int64) (*Tree, error) {
	refuse := func(why string, args ...any) error {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the federation's queue tree is refused",
			Why:  fmt.Sprintf(why, args...),
			Try:  "correct the document; the one in force holds",
		}
	}
	var doc treeJSON
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return nil, refuse("%v", err)
	}
	t := &Tree{Version: version}
	for _, q := range doc.Queues {
		path, err := creel.ParseQueuePath(q.Queue)
		if err != nil {
			return nil, err
		}
		if !path.IsFull() || path == creel.RootQueue {
			return nil, refuse("%q is not a full path below root", q.Queue)
		}
		e := Queue{Path: path, Optout: q.Optout}
		if e.Guarantee, e.GuaranteePercent, err = amounts(q.Guarantee, 0); err != nil {
			return nil, refuse("guarantee of %s: %v", path, err)
		}
		if e.Maximum, e.MaximumPercent, err = amounts(q.Maximum, Unbounded); err != nil {
			return nil, refuse("maximum of %s: %v", path, err)
		}
		if e.UserLimit, e.UserLimitPercent, err = amounts(q.UserLimit, Unbounded); err != nil {
			return nil, refuse("user limit of %s: %v", path, err)
		}
		if err := e.readPreemption(&q); err != nil {
			return nil, refuse("preemption of %s: %v", path, err)
		}
		if q.Weight != nil {
			if e.Weight = *q.Weight; !(e.Weight > 0 && e.Weight <= 1e9) {
				return nil, refuse("weight of %s: %v is not above 0", path, *q.Weight)
			}
		}
		if e.Bounded() && !e.Guarantee.Fits(e.Maximum) {
			return nil, refuse("%s is guaranteed %s, more than its maximum %s", path, e.Guarantee, e.Maximum)
		}
		t.Queues = append(t.Queues, e)
	}
	slices.SortFunc(t.Queues, func(a, b Queue) int { return cmp.Compare(a.Path, b.Path) })
	for i := 1; i < len(t.Queues); i++ {
		if t.Queues[i].Path == t.Queues[i-1].Path {
			return nil, refuse("%s is named twice", t.Queues[i].Path)
		}
	}
	return t, nil
}

// amounts reads {"memory": 1, "vCores": 2, "gpu": 3}; memory and vcores that are
// left out are rest. Or "40%", or {"percent": 40} with or without amounts.
func amounts(data json.RawMessage, rest int64) (r creel.Resource, percent float64, err error) {
	if len(data) == 0 || string(data) == "null" {
		return r, 0, nil
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
		percent, err = strconv.ParseFloat(strings.TrimSpace(number), 64)
		if !ok || err != nil {
			return r, 0, fmt.Errorf("%q is no part of the federation, such as \"40%%\"", text)
		}
		return r, percent, checkPercent(percent)
	}
	m := map[string]json.RawMessage{}
	if json.Unmarshal(data, &m) != nil {
		return r, 0, fmt.Errorf("%s is neither \"40%%\" nor {\"memory\": MB, \"vCores\": N}", data)
	}
	if p, ok := m["percent"]; ok {
		if err := json.Unmarshal(p, &percent); err != nil {
			return r, 0, fmt.Errorf("percent is %s, no number", p)
		}
		if err := checkPercent(percent); err != nil {
			return r, 0, err
		}
		delete(m, "percent")
	}
	if len(m) == 0 {
		return r, percent, nil
	}
	r = creel.NewResource(rest, rest)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		var v int64
		if err := json.Unmarshal(m[name], &v); err != nil || v < 0 || v >= Unbounded {
			return r, 0, fmt.Errorf("%s is %s, not a whole amount of 0 or more", name, m[name])
		}
		switch strings.ToLower(name) {
		case "memory", creel.MemoryName:
			r.MemoryMB = v
		case creel.VCoresName:
			r.VCores = v
		default:
			r = r.With(name, v)
		}
	}
	return r, percent, nil
}

func checkPercent(p float64) error {
	if !(p > 0 && p <= 100) {
		return fmt.Errorf("%v%% is not above 0 and at most 100", p)
	}
	return nil
}
