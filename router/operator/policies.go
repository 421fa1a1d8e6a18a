// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Policies returns the newest versions in the store, by queue. A version without a document is a removed policy. The
// caller may change the list.
func (o *Operator) Policies(ctx context.Context) ([]subcluster.Policy, error) {
	records, err := o.conf.Store.Records(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Clone(records.Policies), nil // the store's list is shared
}

// Policy returns a version of a queue's own document. For version 0 it returns the document that applies to the
// queue, which may be an ancestor's. The error is creel.ErrQueueNotFound if there is none.
func (o *Operator) Policy(ctx context.Context, q creel.QueuePath, version int64) (subcluster.Policy, error) {
	return PolicyAt(ctx, o.conf.Store, q, version)
}

// PolicyReader reads policies from a store or a router.
type PolicyReader interface {
	Records(ctx context.Context) (subcluster.Records, error)
	PolicyHistory(ctx context.Context, q creel.QueuePath, before int64, limit int) ([]subcluster.Policy, error)
}

// PolicyAt is Operator.Policy for callers with a PolicyReader.
func PolicyAt(ctx context.Context, r PolicyReader, q creel.QueuePath, version int64) (subcluster.Policy, error) {
	if version == 0 {
		records, err := r.Records(ctx)
		if err != nil {
			return subcluster.Policy{}, err
		}
		_, at := policies.NewTable(nil, subcluster.NewPolicies(records.Policies)).For(q)
		for _, p := range records.Policies {
			if p.Queue == at && at != "" {
				return p, nil
			}
		}
		return subcluster.Policy{}, &creel.Error{
			Kind: creel.ErrQueueNotFound,
			What: fmt.Sprintf("no policy document applies to %s", q),
			Why:  "creel.router.policy and creel.proxy.policy apply to it",
			Try:  "write one with `creel policy set`",
		}
	}
	// The history returns versions below a given one.
	found, err := r.PolicyHistory(ctx, q, version+1, 1)
	if err != nil {
		return subcluster.Policy{}, err
	}
	if len(found) == 0 || found[0].Version != version {
		return subcluster.Policy{}, &creel.Error{
			Kind: creel.ErrQueueNotFound,
			What: fmt.Sprintf("queue %s has no version %d", q, version),
			Try:  fmt.Sprintf("see `creel policy history %s`", q),
		}
	}
	return found[0], nil
}

// PolicyHistory lists versions of a queue's own policy, newest first, below before
// (0: from the newest).
func (o *Operator) PolicyHistory(
	ctx context.Context,
	q creel.QueuePath,
	before int64,
	limit int,
) ([]subcluster.Policy, error) {
	return o.conf.Store.PolicyHistory(ctx, q, before, limit)
}

// PutPolicy writes a queue's policy for its author. It rejects a document with weights of unknown members
// (CheckPolicy), unless anyMember is true. Without a document it removes the policy. If there is no policy to remove,
// the error is creel.ErrQueueNotFound.
func (o *Operator) PutPolicy(
	ctx context.Context,
	user string,
	w statestore.PolicyWrite,
	anyMember bool,
) (subcluster.Policy, error) {
	if err := o.CheckWrite(ctx, user, w, anyMember); err != nil {
		return subcluster.Policy{}, err
	}
	before, err := Current(ctx, o.conf.Store, w.Queue)
	if err != nil {
		return subcluster.Policy{}, err
	}
	w.Author = user
	return o.conf.Store.PutPolicy(o.conf.Events.Recording(ctx, statestore.Event{
		Kind: statestore.EventPolicy, Subject: string(w.Queue), User: user, Before: string(before.Document),
		After: string(w.Document), Detail: w.Comment,
	}), w)
}

// CheckWrite makes the checks of PutPolicy, except of the expected version.
func (o *Operator) CheckWrite(ctx context.Context, user string, w statestore.PolicyWrite, anyMember bool) error {
	if err := o.allow(user, "change the policy of "+string(w.Queue)); err != nil {
		return err
	}
	if len(w.Document) > 0 {
		return CheckPolicy(ctx, o.conf.Store, w.Document, anyMember)
	}
	now, err := Current(ctx, o.conf.Store, w.Queue)
	if err == nil && len(now.Document) == 0 {
		err = noPolicy(w.Queue)
	}
	return err
}

func noPolicy(q creel.QueuePath) error {
	return &creel.Error{
		Kind: creel.ErrQueueNotFound, What: fmt.Sprintf("%s has no policy of its own", q),
		Try: "see `creel policy list`",
	}
}

// Write is PutPolicy that replaces the queue's newest version.
func (o *Operator) Write(ctx context.Context, user string, w statestore.PolicyWrite) (subcluster.Policy, error) {
	now, err := Current(ctx, o.conf.Store, w.Queue)
	if err != nil {
		return now, err
	}
	w.Expect = now.Version
	return o.PutPolicy(ctx, user, w, false)
}

// CheckPolicy rejects a document that routers cannot read. Unless anyMember is true, it also rejects weights of
// members unknown to the store.
func CheckPolicy(ctx context.Context, r PolicyReader, document []byte, anyMember bool) error {
	if len(document) == 0 {
		return nil // a removal
	}
	policy, err := policies.Parse(document)
	if err != nil || anyMember {
		return err
	}
	records, err := r.Records(ctx)
	if err != nil {
		return err
	}
	known := make([]creel.SubclusterID, len(records.Members))
	for i := range records.Members {
		known[i] = records.Members[i].ID
	}
	return policy.CheckMembers(known)
}

// Current returns the newest version of a queue's own policy and its document; 0 and nil if there is none or it was
// removed.
func Current(ctx context.Context, r PolicyReader, q creel.QueuePath) (subcluster.Policy, error) {
	found, err := r.PolicyHistory(ctx, q, 0, 1)
	if err != nil || len(found) == 0 {
		return subcluster.Policy{Queue: q}, err
	}
	return found[0], nil
}

// MayPreview rejects users without access to other users' submissions: a preview of a policy is made from these.
func (o *Operator) MayPreview(user string) error {
	return o.maySee(user, "the submissions to a queue", "they contain other users' names")
}

// MayInspect rejects users without access to this router's settings.
func (o *Operator) MayInspect(user string) error {
	return o.maySee(user, "this router's settings", "they describe the machines")
}

func (o *Operator) maySee(user, what, why string) error {
	if admin := *o.admin.Load(); admin == nil || admin(user) {
		return nil
	}
	return &creel.Error{
		Kind: creel.ErrNotPermitted,
		What: fmt.Sprintf("%q may not see %s", user, what),
		Why:  why + ", and yarn.admin.acl of this router does not name that user",
		Try:  "ask as an administrator (--user, HADOOP_USER_NAME), or change yarn.admin.acl",
	}
}
