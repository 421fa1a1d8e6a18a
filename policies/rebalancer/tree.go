// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/strictjson"
	"github.com/creelrm/creel/subcluster"
)

// Classes and names of this package's documents in the store (statestore.Documents).
const (
	TreeClass   = "queues" // the federation's queue tree
	TreeName    = "federation"
	PlanClass   = subcluster.PlanClass
	PlanName    = subcluster.PlanName
	EscrowClass = "escrow"       // a record for each queue with a maximum, by subcluster.QueueOn
	UsersClass  = "escrow-users" // a record for each queue with a user limit, likewise
)

// Tree has the federation-wide settings of queues, from its document in the store. For queues that it does not name
// the members' files apply, summed.
type Tree struct {
	Version int64   // of the document, 0 without one
	Queues  []Queue // by path
	// Labels has the settings on nodes with a label, by label. Each is a separate tree (In).
	Labels map[string][]Queue
}

// In returns the tree of the nodes with a label, and t itself for nodes without one (""). Nodes with a label form a
// separate pool: amounts and percentages refer to these nodes. The queues are shared with t.
func (t *Tree) In(label string) *Tree {
	if label == "" {
		return t
	}
	return &Tree{Version: t.Version, Queues: t.Labels[label]}
}

// Pools returns the labels that the tree has settings for, sorted, after "" for nodes without one.
func (t *Tree) Pools() []string { return append([]string{""}, slices.Sorted(maps.Keys(t.Labels))...) }

// Queue has the document's settings of one queue.
type Queue struct {
	Path creel.QueuePath
	// Guarantee replaces the sum of the members' guarantees; zero leaves that sum.
	Guarantee creel.Resource
	// Weight is the queue's weight for shares beyond guarantees; 0: the guarantee is the weight.
	Weight float64
	// Maximum is the most that the queue may use in all members together, enforced by escrow; zero for none. Types
	// that the document leaves out are Unbounded.
	Maximum creel.Resource
	// UserLimit is the most that one user of a leaf queue may use in all members together; zero for no limit. Escrow
	// enforces it (escrow.Users). Types left out are as in Maximum.
	UserLimit        creel.Resource
	UserLimitPercent float64
	// GuaranteePercent and MaximumPercent are the amounts above as percentages of the federation's size; 0: the
	// amounts are absolute. The writer of the document computes the amounts (Resolve). The rebalancer recomputes them
	// when the federation grows or shrinks.
	GuaranteePercent, MaximumPercent float64
	// MostOpportunistic is the most opportunistic containers that the queue may have in all members together, on all
	// nodes; 0 for no limit. Escrow enforces it (escrow.Opportunistic).
	MostOpportunistic int64
	// UserLimitOpportunistic is the same for each user of the queue and of the queues below it.
	UserLimitOpportunistic int64
	// Preemption is the most that may be taken back from other queues for this queue in each PreemptionEvery of the
	// store's clock. It covers all members together; zero for no bound. Types that the document leaves out are
	// Unbounded. PreemptionPercent works like GuaranteePercent.
	Preemption        creel.Resource
	PreemptionPercent float64
	PreemptionEvery   time.Duration
	// Optout: routers, proxies and escrow do not follow the plan for this queue.
	Optout bool
}

// Unbounded is the amount of a type that a maximum does not name. Sums of a few thousand of them do not overflow.
const Unbounded = math.MaxInt64 >> 16

// Bounded reports whether the queue has a maximum.
func (q *Queue) Bounded() bool { return !q.Maximum.IsZero() }

// UserLimited reports whether each user of the queue has a limit.
func (q *Queue) UserLimited() bool { return !q.UserLimit.IsZero() }

// WithinLimit sums the users' use and demand, by name, each up to the limit.
func (q *Queue) WithinLimit(needs map[string]creel.Resource) (sum creel.Resource) {
	for _, n := range needs {
		sum = sum.Add(n.Min(q.UserLimit))
	}
	return sum
}

// Find returns the document's settings of a queue, nil if there are none.
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

// TreeShape is the type that describes the fields of the document.
func TreeShape() reflect.Type { return reflect.TypeFor[treeJSON]() }

type treeJSON struct {
	Queues []queueJSON `json:"queues"`
}

type queueJSON struct {
	Queue string `json:"queue"`
	limitsJSON
	// Labels are the limits on nodes with a label.
	Labels map[string]limitsJSON `json:"labels,omitempty"`
	Optout bool                  `json:"optout,omitempty"`
	// MaximumOpportunistic is the most opportunistic containers, on all nodes.
	MaximumOpportunistic *int64 `json:"maximum_opportunistic,omitempty"`
	// UserLimitOpportunistic is the same for each user.
	UserLimitOpportunistic *int64 `json:"user_limit_opportunistic,omitempty"`
}

// limitsJSON has a queue's settings in one pool of nodes.
type limitsJSON struct {
	Guarantee json.RawMessage `json:"guarantee,omitempty"`
	Weight    *float64        `json:"weight,omitempty"`
	Maximum   json.RawMessage `json:"maximum,omitempty"`
	UserLimit json.RawMessage `json:"user_limit,omitempty"`
	// Preemption is the amount that may be taken back for the queue in PreemptionSeconds [60].
	Preemption        json.RawMessage `json:"preemption,omitempty"`
	PreemptionSeconds int64           `json:"preemption_seconds,omitempty"`
}

// labelForm is the format of node labels, as in YARN.
var labelForm = regexp.MustCompile(`^[0-9a-zA-Z][0-9a-zA-Z_-]{0,254}$`)

// ParseTree reads the document:
//
//	{"queues": [{"queue": "root.research", "weight": 2,
//	  "guarantee": {"memory": 1048576, "vCores": 256},
//	  "maximum": {"memory": 4194304},
//	  "labels": {"gpu": {"maximum": "30%"}}}]}
//
// "user_limit" limits each user of the queue, "maximum_opportunistic" its opportunistic containers, and
// "user_limit_opportunistic" those of each user. "preemption" limits the amount taken back from other queues for the
// queue (see GivePreemption). Memory is in MB; further types have their own names. "40%" is a part of the federation.
// So is {"percent": 40}, with the amounts that it had when the document was written. All values apply to nodes
// without a label; "labels" has the same for nodes with one. Unknown keys, negative amounts and duplicate queues are
// rejected.
func ParseTree(data []byte, version int64) (*Tree, error) {
	refuse := func(why string, args ...any) error {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the federation's queue tree is invalid",
			Why:  fmt.Sprintf(why, args...),
			Try:  "correct the document; the one in force stays",
		}
	}
	var doc treeJSON
	if err := strictjson.Unmarshal(data, &doc); err != nil {
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
		if err := e.read(&q.limitsJSON); err != nil {
			return nil, refuse("%v", err)
		}
		for _, limit := range []struct {
			name string
			of   *int64
			to   *int64
		}{
			{"maximum_opportunistic", q.MaximumOpportunistic, &e.MostOpportunistic},
			{"user_limit_opportunistic", q.UserLimitOpportunistic, &e.UserLimitOpportunistic},
		} {
			if limit.of == nil {
				continue
			}
			if *limit.to = *limit.of; *limit.to < 1 || *limit.to >= Unbounded {
				return nil, refuse("%s of %s is %d, not a number of containers above 0", limit.name, path, *limit.to)
			}
		}
		t.Queues = append(t.Queues, e)
		for _, label := range slices.Sorted(maps.Keys(q.Labels)) {
			limits, on := q.Labels[label], Queue{Path: path, Optout: q.Optout}
			if !labelForm.MatchString(label) {
				return nil, refuse("%.40q of %s is not a node label: letters, digits, _ and -", label, path)
			}
			if err := on.read(&limits); err != nil {
				return nil, refuse("on nodes of label %s: %v", label, err)
			}
			if t.Labels == nil {
				t.Labels = map[string][]Queue{}
			}
			t.Labels[label] = append(t.Labels[label], on)
		}
	}
	for _, label := range t.Pools() {
		slices.SortFunc(t.In(label).Queues, func(a, b Queue) int { return cmp.Compare(a.Path, b.Path) })
	}
	for i := 1; i < len(t.Queues); i++ {
		if t.Queues[i].Path == t.Queues[i-1].Path {
			return nil, refuse("%s is named twice", t.Queues[i].Path)
		}
	}
	return t, nil
}

// read sets the queue's settings in one pool of nodes from the document.
func (q *Queue) read(doc *limitsJSON) (err error) {
	if q.Guarantee, q.GuaranteePercent, err = amounts(doc.Guarantee, 0); err != nil {
		return fmt.Errorf("guarantee of %s: %w", q.Path, err)
	}
	if q.Maximum, q.MaximumPercent, err = amounts(doc.Maximum, Unbounded); err != nil {
		return fmt.Errorf("maximum of %s: %w", q.Path, err)
	}
	if q.UserLimit, q.UserLimitPercent, err = amounts(doc.UserLimit, Unbounded); err != nil {
		return fmt.Errorf("user limit of %s: %w", q.Path, err)
	}
	if doc.Weight != nil {
		if q.Weight = *doc.Weight; !(q.Weight > 0 && q.Weight <= 1e9) {
			return fmt.Errorf("weight of %s: %v is not above 0", q.Path, *doc.Weight)
		}
	}
	if q.Bounded() && !q.Guarantee.Fits(q.Maximum) {
		return fmt.Errorf("%s is guaranteed %s, more than its maximum %s", q.Path, q.Guarantee, q.Maximum)
	}
	if err := q.readPreemption(doc); err != nil {
		return fmt.Errorf("preemption of %s: %w", q.Path, err)
	}
	return nil
}

// amounts reads {"memory": 1, "vCores": 2, "gpu": 3}, where omitted memory and vcores are rest. It also reads "40%",
// and {"percent": 40} with or without amounts.
func amounts(data json.RawMessage, rest int64) (r creel.Resource, percent float64, err error) {
	if len(data) == 0 || string(data) == "null" {
		return r, 0, nil
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
		percent, err = strconv.ParseFloat(strings.TrimSpace(number), 64)
		if !ok || err != nil {
			return r, 0, fmt.Errorf("%q is not a part of the federation, such as \"40%%\"", text)
		}
		return r, percent, checkPercent(percent)
	}
	m := map[string]json.RawMessage{}
	if json.Unmarshal(data, &m) != nil {
		return r, 0, fmt.Errorf("%s is neither \"40%%\" nor {\"memory\": MB, \"vCores\": N}", data)
	}
	if p, ok := m["percent"]; ok {
		if err := json.Unmarshal(p, &percent); err != nil {
			return r, 0, fmt.Errorf("percent is %s, not a number", p)
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
