// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// A queue's policy has creel's versions, and Hadoop's record if the newest version is in Hadoop's form: a
// policy manager with its parameters. A record that Hadoop's programs wrote or deleted since
// becomes a version of its own, by whichever
// process of creel reads it first.

// byHadoop is the author of such versions.
const byHadoop = "hadoop"

// policyShard is the shard of one queue's policies.
type policyShard struct {
	*shard
	queue  creel.QueuePath
	hadoop *node
}

// hadoopForm is a policy document in Hadoop's form.
type hadoopForm struct {
	Type   string          `json:"type"`
	Queue  creel.QueuePath `json:"queue,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
}

// queueOf is the queue of a record of Hadoop's, whose name may lack the root.
func queueOf(node string) (creel.QueuePath, error) {
	if node == "*" {
		return "*", nil
	}
	q, err := creel.ParseQueuePath(node)
	if err == nil && !q.IsFull() {
		q = creel.RootQueue.Child(node)
	}
	return q, err
}

// policy reads the nodes of a queue's policy. The version of all policies is in the parent of creel's nodes.
func (t *txn) policy(q creel.QueuePath) (*policyShard, error) {
	parent := t.store.paths.hadoopPolicies + "/"
	hadoop, err := t.get(parent + string(q))
	if err != nil {
		return nil, err
	}
	if short, ok := strings.CutPrefix(string(q), "root."); ok && !hadoop.is && !strings.Contains(short, ".") {
		other, err := t.get(parent + short)
		if err != nil {
			return nil, err
		}
		if other.is {
			hadoop = other
		}
	}
	own := t.store.paths.policies
	s, err := t.shard(
		part{own, []string{"version"}}, part{own + "/" + name(string(q)), []string{"policies"}})
	return &policyShard{s, q, hadoop}, err
}

// newest returns the queue's newest version.
func (p *policyShard) newest() (subcluster.Policy, error) {
	h, err := p.PolicyHistory(p.queue, 0, 1)
	if err != nil || len(h) == 0 {
		return subcluster.Policy{Queue: p.queue}, err
	}
	return h[0], nil
}

// differs returns the write that adopts Hadoop's record; ok is false if there is none, or the newest version has it.
func (p *policyShard) differs() (w statestore.PolicyWrite, ok bool, err error) {
	newest, err := p.newest()
	if err != nil {
		return w, false, err
	}
	w = statestore.PolicyWrite{Queue: p.queue, Expect: newest.Version, Author: byHadoop}
	should := hadoopPolicy(p.queue, newest.Document)
	if len(p.hadoop.data) == 0 {
		// Its writer has yet to fill a node without data.
		return w, should != nil && !p.hadoop.is, nil
	}
	var is yarnpb.SubClusterPolicyConfigurationProto
	if err := proto.Unmarshal(p.hadoop.data, &is); err != nil {
		return w, false, statestore.Unreadable("Hadoop's policy of "+string(p.queue), err)
	}
	if should != nil && should.GetType() == is.GetType() && bytes.Equal(should.Params, is.Params) {
		return w, false, nil
	}
	form := hadoopForm{Type: is.GetType(), Queue: p.queue}
	if len(is.Params) > 0 {
		form.Params = jsonOf(string(is.Params))
	}
	w.Document = jsonOf(form)
	return w, true, nil
}

// hadoopPolicy is the record of a document that is in Hadoop's form, else nil.
func hadoopPolicy(q creel.QueuePath, document []byte) *yarnpb.SubClusterPolicyConfigurationProto {
	var form hadoopForm
	if json.Unmarshal(document, &form) != nil || form.Type == "" {
		return nil
	}
	params, ok := hadoopParams(form.Params)
	if !ok {
		return nil
	}
	return &yarnpb.SubClusterPolicyConfigurationProto{
		Queue: proto.String(string(q)), Type: proto.String(form.Type), Params: params,
	}
}

// hadoopParams writes parameters as Hadoop's programs read them: a text is theirs already; an object has weights by
// member.
func hadoopParams(raw json.RawMessage) (params []byte, ok bool) {
	if len(raw) == 0 {
		return []byte{}, true
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text), true
	}
	var p struct {
		Router map[string]float64 `json:"routerPolicyWeights"`
		AMRM   map[string]float64 `json:"amrmPolicyWeights"`
		Alpha  json.RawMessage    `json:"headroomAlpha"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return nil, false
	}
	alpha := cmp.Or(strings.Trim(string(p.Alpha), `"`), "0.0")
	if _, err := strconv.ParseFloat(alpha, 64); err != nil {
		return nil, false
	}
	return jsonOf(map[string]any{
		"routerPolicyWeights": entries(p.Router), "amrmPolicyWeights": entries(p.AMRM), "headroomAlpha": alpha,
	}), true
}

// entries are weights as Hadoop writes them: numbers are texts.
func entries(weights map[string]float64) any {
	type key struct {
		ID string `json:"id"`
	}
	type entry struct {
		Key   key    `json:"key"`
		Value string `json:"value"`
	}
	list := []entry{}
	for id, w := range weights {
		list = append(list, entry{key{id}, strconv.FormatFloat(w, 'f', -1, 32)})
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.Key.ID, b.Key.ID) })
	return map[string]any{"entry": list}
}

// write makes a version, and Hadoop's record of it. adopted: Hadoop's record is the reason.
func (p *policyShard) write(w statestore.PolicyWrite, adopted bool) (subcluster.Policy, error) {
	made, err := p.PutPolicy(p.txn.now, w)
	if err != nil {
		return made, err
	}
	p.txn.tell(statestore.Change{Kind: statestore.ChangePolicies, Version: made.Version})
	if adopted {
		return made, nil
	}
	record := hadoopPolicy(p.queue, made.Document)
	if record == nil {
		if p.hadoop.is {
			p.txn.remove(p.hadoop.path)
		}
		return made, nil
	}
	data, err := proto.Marshal(record)
	if err == nil && !bytes.Equal(data, p.hadoop.data) {
		p.txn.put(p.hadoop.path, data)
	}
	return made, err
}

// PutPolicy implements statestore.Policies.
func (s *Store) PutPolicy(ctx context.Context, w statestore.PolicyWrite) (made subcluster.Policy, err error) {
	if err := statestore.CheckPolicy(&w, s.cfg.Validate); err != nil {
		return made, err
	}
	err = s.change(ctx, false, func(t *txn) error {
		p, err := t.policy(w.Queue)
		if err != nil {
			return err
		}
		if adopt, differs, err := p.differs(); err != nil {
			return err
		} else if differs && s.cfg.valid(adopt) {
			if _, err := p.write(adopt, true); err != nil {
				return err
			}
		}
		if made, err = p.write(w, false); err != nil {
			return err
		}
		return t.record()
	})
	return made, err
}

// valid reports whether a policy of Hadoop's can be a version.
func (c *Config) valid(w statestore.PolicyWrite) bool {
	return statestore.CheckPolicy(&w, c.Validate) == nil
}

// adoptPolicies makes versions of the records that Hadoop's programs wrote or deleted.
func (s *engine) adoptPolicies(ctx context.Context) error {
	var changed []creel.QueuePath
	var gone bool
	err := s.look(ctx, func(t *txn) error {
		changed, gone = nil, false
		queues, err := t.queues()
		if err != nil {
			return err
		}
		differs, removed := make([]bool, len(queues)), make([]bool, len(queues))
		err = each(len(queues), func(i int) error {
			p, err := t.apart().policy(queues[i])
			if err != nil {
				return unlessLost(err)
			}
			w, ok, err := p.differs()
			differs[i] = ok && err == nil && s.cfg.valid(w)
			removed[i] = differs[i] && len(w.Document) == 0
			return nil
		})
		gone = slices.Contains(removed, true)
		for i, q := range queues {
			if differs[i] {
				changed = append(changed, q)
			}
		}
		return err
	})
	if gone && s.cfg.Replacing != nil {
		s.cfg.Replacing(ctx)
	}
	for _, q := range changed {
		if err == nil {
			err = s.adoptPolicy(ctx, q)
		}
	}
	return err
}

func unlessLost(err error) error {
	if isLost(err) {
		return err
	}
	return nil
}

func (s *engine) adoptPolicy(ctx context.Context, q creel.QueuePath) error {
	return s.change(ctx, false, func(t *txn) error {
		p, err := t.policy(q)
		if err != nil {
			return err
		}
		w, ok, err := p.differs()
		if err != nil || !ok || !s.cfg.valid(w) {
			return unlessLost(err)
		}
		_, err = p.write(w, true)
		return err
	})
}

// queues lists the queues with a policy, sorted.
func (t *txn) queues() ([]creel.QueuePath, error) {
	var queues []creel.QueuePath
	own, err := t.children(t.store.paths.policies)
	if err != nil {
		return nil, err
	}
	for _, n := range own {
		queues = append(queues, creel.QueuePath(named(n)))
	}
	hadoop, err := t.children(t.store.paths.hadoopPolicies)
	if err != nil {
		return nil, err
	}
	for _, n := range hadoop {
		if q, err := queueOf(n); err == nil {
			queues = append(queues, q)
		}
	}
	slices.Sort(queues)
	return slices.Compact(queues), nil
}

// policies reads the newest version of each queue, and the problems of Hadoop's records that are no versions.
func (t *txn) policies(out *subcluster.Records) ([]subcluster.Policy, error) {
	queues, err := t.queues()
	if err != nil {
		return nil, err
	}
	list, problems := make([]subcluster.Policy, len(queues)), make([]string, len(queues))
	err = each(len(queues), func(i int) error {
		p, err := t.apart().policy(queues[i])
		if err == nil {
			list[i], err = p.newest()
		}
		if err == nil {
			if w, ok, e := p.differs(); e != nil {
				err = e
			} else if ok && !t.store.cfg.valid(w) {
				problems[i] = fmt.Sprintf("Hadoop's policy of %s cannot be used: %v", queues[i],
					statestore.CheckPolicy(&w, t.store.cfg.Validate))
			}
		}
		if err != nil && !isLost(err) {
			problems[i], err = err.Error(), nil
		}
		return err
	})
	var found []subcluster.Policy
	for i := range queues {
		if list[i].Version > 0 {
			found = append(found, list[i])
		}
		if problems[i] != "" {
			out.Problems = append(out.Problems, problems[i])
		}
	}
	return found, err
}

// PolicyHistory implements statestore.Policies.
func (s *Store) PolicyHistory(
	ctx context.Context, q creel.QueuePath, before int64, limit int,
) (list []subcluster.Policy, err error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, err
	}
	if q != "*" {
		if _, err := creel.ParseQueuePath(string(q)); err != nil {
			return nil, err
		}
	}
	if before == 0 {
		before = math.MaxInt64
	}
	err = s.look(ctx, func(t *txn) error {
		p, err := t.policy(q)
		if err == nil {
			list, err = p.PolicyHistory(q, before, limit)
		}
		return err
	})
	return list, err
}
