// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

// policyFlags are the flags of the commands that read and write policies. These commands call a router, which
// authenticates the user; with --store they access the state store itself, for when no router runs. Access to the
// store implies permission to change policies.
type policyFlags struct {
	clientFlags
	conf confFlags
}

func (f *policyFlags) register(c *cobra.Command) {
	f.clientFlags.register(c)
	f.conf.register(c)
	c.Flags().Func("store", "past the routers, in the state store at `URL`, with the settings of --conf and -D", func(value string) error {
		if value == "memory" {
			return errors.New("the store \"memory\" lives inside of a daemon: ask its router")
		}
		f.conf.flags = append(f.conf.flags, settings.Flag{Name: "--store", Key: "creel.store.url", Value: value})
		return nil
	})
}

// policySource reads and writes policies, through a router or in a store.
type policySource interface {
	operator.PolicyReader
	view(ctx context.Context) (*subcluster.View, error)
	// put writes a version. Unless anyMember, it rejects weights for members that do not exist.
	put(ctx context.Context, w statestore.PolicyWrite, anyMember bool) (subcluster.Policy, error)
}

// with opens the source for one command.
func (f *policyFlags) with(ctx context.Context, do func(ctx context.Context, from policySource) error) error {
	if err := f.resolve(); err != nil {
		return err
	}
	if len(f.conf.flags) > 0 {
		past := storeFlags{confFlags: f.conf, printer: f.printer}
		return past.with(ctx, func(ctx context.Context, store statestore.Store) error {
			return do(ctx, storePolicies{store, f.user})
		})
	}
	if err := f.printer.check(); err != nil {
		return err
	}
	return do(ctx, routerPolicies{&f.clientFlags})
}

// storePolicies accesses the policies of a store. Writes bypass the routers: the history names the user, but no router
// has authenticated them.
type storePolicies struct {
	statestore.Store
	author string
}

func (s storePolicies) view(ctx context.Context) (*subcluster.View, error) {
	records, err := s.Records(ctx)
	if err != nil {
		return nil, err
	}
	plans, err := s.Documents(ctx, subcluster.PlanClass)
	if err != nil {
		return nil, err
	}
	if d, ok := plans.Find(subcluster.PlanName); ok {
		if records.Plan, err = subcluster.ParsePlan(d.Data, d.Version, d.Time); err != nil {
			return nil, err
		}
	}
	return subcluster.Build(nil, records, records.Now), nil
}

func (s storePolicies) put(ctx context.Context, w statestore.PolicyWrite, anyMember bool) (subcluster.Policy, error) {
	if err := checkMembers(ctx, s, w.Document, anyMember); err != nil {
		return subcluster.Policy{}, err
	}
	w.Author = s.author
	return s.PutPolicy(ctx, w)
}

// checkMembers rejects weights for missing members as a usage error. The error names the flag.
func checkMembers(ctx context.Context, from policySource, document []byte, anyMember bool) error {
	err := operator.CheckPolicy(ctx, from, document, anyMember)
	if errors.Is(err, creel.ErrInvalidRequest) {
		return usage(fmt.Errorf("%w; --any-member writes it anyway", err))
	}
	return err
}

// routerPolicies accesses policies through a router.
type routerPolicies struct{ f *clientFlags }

func policyOf(d rest.PolicyDoc) subcluster.Policy {
	return subcluster.Policy{
		Queue: d.Queue, Version: d.Version, Document: d.Document, Author: d.Author, Comment: d.Comment, Time: d.Time,
	}
}

func (r routerPolicies) list(ctx context.Context, path string, q url.Values) ([]subcluster.Policy, error) {
	var doc rest.PoliciesDoc
	if _, err := r.f.call(ctx, http.MethodGet, path, q, nil, &doc); err != nil {
		return nil, err
	}
	var out []subcluster.Policy
	for _, p := range doc.Policies {
		out = append(out, policyOf(p))
	}
	return out, nil
}

// Records returns the policies and the members' names.
func (r routerPolicies) Records(ctx context.Context) (out subcluster.Records, err error) {
	view, err := r.view(ctx)
	if err != nil {
		return out, err
	}
	for i := range view.Members {
		out.Members = append(out.Members, subcluster.Record{Member: view.Members[i].Member})
	}
	out.Policies = view.Policies.All()
	return out, nil
}

func policyPath(q creel.QueuePath) string { return "/api/v1/policies/" + url.PathEscape(string(q)) }

func (r routerPolicies) PolicyHistory(
	ctx context.Context,
	q creel.QueuePath,
	before int64,
	limit int,
) ([]subcluster.Policy, error) {
	return r.list(ctx, policyPath(q)+"/history",
		url.Values{"before": {strconv.FormatInt(before, 10)}, "limit": {strconv.Itoa(limit)}})
}

func (r routerPolicies) view(ctx context.Context) (*subcluster.View, error) {
	var doc rest.ViewDoc
	if _, err := r.f.call(ctx, http.MethodGet, "/api/v1/view", nil, nil, &doc); err != nil {
		return nil, err
	}
	list, err := r.list(ctx, "/api/v1/policies", nil)
	if err != nil {
		return nil, err
	}
	view, err := viewOf(doc, "as the router sees it", list)
	if err != nil {
		return nil, fmt.Errorf("the router's view: %w", err)
	}
	return view, nil
}

func (r routerPolicies) put(ctx context.Context, w statestore.PolicyWrite, anyMember bool) (subcluster.Policy, error) {
	document := json.RawMessage(w.Document)
	if len(document) == 0 {
		document = json.RawMessage("null")
	}
	var made rest.PolicyDoc
	if err := checkMembers(ctx, r, w.Document, anyMember); err != nil {
		return subcluster.Policy{}, err
	}
	_, err := r.f.call(ctx, http.MethodPut, policyPath(w.Queue), nil, rest.PolicyOrder{
		Document: document, Expect: w.Expect, Comment: w.Comment, AnyMember: anyMember,
	}, &made)
	return policyOf(made), err
}

// viewOf converts a document to a view. It includes the members, each in its state with the reason, and the plan. The
// plan counts as in force.
func viewOf(doc rest.ViewDoc, reason string, list []subcluster.Policy) (*subcluster.View, error) {
	members, err := viewMembers(doc, reason)
	if err != nil {
		return nil, err
	}
	view := subcluster.NewView(time.Time{}, members, list)
	if p := doc.Plan; p != nil {
		if view.Plan, err = subcluster.ParsePlan(p.Document, p.Version, p.At); err != nil {
			return nil, err
		}
	}
	return view, nil
}

// viewMembers returns the members of a view's document.
func viewMembers(doc rest.ViewDoc, reason string) ([]subcluster.Status, error) {
	members := make([]subcluster.Status, len(doc.Members))
	for i, m := range doc.Members {
		if err := subcluster.ValidID(m.ID); err != nil {
			return nil, err
		}
		load, err := subcluster.ParseLoad(m.Report)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.ID, err)
		}
		state, err := stateNamed(m.State)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.ID, err)
		}
		members[i] = subcluster.Status{Member: subcluster.Member{ID: m.ID}, State: state, Reason: reason, Load: load}
	}
	return members, nil
}
