// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/strictjson"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

// submissionDoc is an application that needs a home.
type submissionDoc struct {
	Queue    creel.QueuePath `json:"queue"`
	User     string          `json:"user"`
	Name     string          `json:"name"`
	Type     string          `json:"type"`
	Tags     []string        `json:"tags"`
	MemoryMB int64           `json:"memory_mb"` // of the AM's container
	VCores   int64           `json:"vcores"`
	Label    string          `json:"label"`
	ID       string          `json:"id"` // an application id, for policies that read it
}

// askDoc describes the resources that the application's AM then requests.
type askDoc struct {
	Count    int64      `json:"count"`
	MemoryMB int64      `json:"memory_mb"`
	VCores   int64      `json:"vcores"`
	Label    string     `json:"label"`
	Strict   bool       `json:"strict"`
	Places   []placeDoc `json:"places"`
}

type placeDoc struct {
	Name    string               `json:"name"`
	Count   int64                `json:"count"`
	Members []creel.SubclusterID `json:"members"`
}

// tryDoc is the decision.
type tryDoc struct {
	Queue  creel.QueuePath    `json:"queue"`
	Policy string             `json:"policy"` // queue whose document applies, the file, or default
	Home   creel.SubclusterID `json:"home"`
	Error  string             `json:"error,omitempty"`
	Reason policies.Reason    `json:"reason"`
	Splits []splitDoc         `json:"splits,omitempty"`
}

type splitDoc struct {
	Ask    int              `json:"ask"` // index of the ask in the file, from 0
	Shares map[string]int64 `json:"shares"`
	Error  string           `json:"error,omitempty"`
	Reason policies.Reason  `json:"reason"`
}

// policyView prints the live view. The user can save or edit it for a trial.
func policyView() *cobra.Command {
	var f policyFlags
	c := &cobra.Command{
		Use:   "view",
		Short: "print the view that policies decide on, for `creel policy try --view FILE`",
		Args:  noArguments,
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return f.with(c.Context(), func(ctx context.Context, from policySource) error {
			view, err := from.view(ctx)
			if err != nil {
				return err
			}
			doc, err := rest.ViewDocOf(view)
			if err != nil {
				return err
			}
			e := json.NewEncoder(c.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(doc)
		})
	}
	f.register(c)
	return c
}

func policyTry() *cobra.Command {
	var f policyFlags
	var document, view, submission, asks string
	var seed uint64
	c := &cobra.Command{
		Use:   "try",
		Short: "decide a submission, and its asks, without doing anything",
		Long: `Decides as a router (the home) and a proxy (the split of each ask) would, and
prints the decision with its reasons. Nothing is submitted, asked or written.

The submission is a file of JSON, - for standard input:
  {"queue": "root.prod", "user": "ann", "memory_mb": 2048, "vcores": 1}
and may have name, type, tags, label and id. Asks are a list of
  {"count": 200, "memory_mb": 4096, "vcores": 1}
which may have label, strict and places ({"name": "host7", "count": 3,
"members": ["east"]}). Home has the application; no other member has a UAM yet.`,
		Example: `  creel policy try --submission job.json
  creel policy try --submission job.json --policy new.json --asks asks.json -o json
  creel policy view > view.json; creel policy try --view view.json --policy new.json --submission job.json`,
		Args: noArguments,
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.printer.check(); err != nil {
			return err
		}
		if submission == "" {
			return usage(errors.New("missing --submission FILE; see creel policy try --help"))
		}
		t := trial{in: c.InOrStdin(), rnd: rand.New(rand.NewPCG(seed, 0)), policy: policies.Default(), from: "default"}
		if err := t.read(submission, asks, document, view); err != nil {
			return err
		}
		if view == "" {
			err := f.with(c.Context(), func(ctx context.Context, from policySource) error {
				live, err := from.view(ctx)
				if err != nil {
					return err
				}
				t.view = live
				if document != "" {
					return nil
				}
				p, at := policies.NewTable(nil, live.Policies).For(t.submission.Queue)
				if t.policy = p; at != "" {
					t.from = string(at)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		doc := t.decide()
		return printOne(c.OutOrStdout(), f.printer, doc, string(doc.Home), doc.write)
	}
	f.register(c)
	fl := c.Flags()
	fl.StringVar(&submission, "submission", "", "the submission, a `FILE` of JSON; - is standard input")
	fl.StringVar(&asks, "asks", "", "the AM's asks, a `FILE` of JSON")
	fl.StringVar(&document, "policy", "", "decide by the document in `FILE`; else by the one that holds for the queue, with --view by the default")
	fl.StringVar(&view, "view", "", "decide on the view in `FILE`, see creel policy view; else on the live one")
	fl.Uint64Var(&seed, "seed", 1, "of policies that draw; the same seed draws the same")
	return c
}

// trial is the input of a decision.
type trial struct {
	in         io.Reader
	rnd        *rand.Rand
	view       *subcluster.View
	policy     policies.Policy
	from       string
	submission policies.Submission
	asks       []askDoc
}

// read reads the files named by the flags; "" is skipped.
func (t *trial) read(submission, asks, document, view string) error {
	var s submissionDoc
	if err := t.parse("--submission", submission, &s); err != nil {
		return err
	}
	t.submission = policies.Submission{
		Name: s.Name, User: s.User, Type: s.Type, Queue: s.Queue, Tags: s.Tags, Label: s.Label,
		Size: creel.NewResource(s.MemoryMB, s.VCores),
	}
	if s.ID != "" {
		id, err := creel.ParseApplicationID(s.ID)
		if err != nil {
			return usage(fmt.Errorf("--submission: %w", err))
		}
		t.submission.Application = id
	}
	if asks != "" {
		if err := t.parse("--asks", asks, &t.asks); err != nil {
			return err
		}
	}
	if document != "" {
		b, err := t.file("--policy", document)
		if err != nil {
			return err
		}
		if t.policy, err = policies.Parse(b); err != nil {
			return usage(err)
		}
		t.from = document
	}
	if view == "" {
		return nil
	}
	var v rest.ViewDoc
	if err := t.parse("--view", view, &v); err != nil {
		return err
	}
	var err error
	if t.view, err = viewOf(v, "by the file", nil); err != nil {
		return usage(fmt.Errorf("--view: %w", err))
	}
	return nil
}

// maxTrial is the limit for standard input, in bytes.
const maxTrial = 8 << 20

// stateNamed parses a state as written in views; an empty text is active.
func stateNamed(name string) (subcluster.State, error) {
	if name == "" {
		return subcluster.StateActive, nil
	}
	for s := subcluster.StateActive; s <= subcluster.StateDeregistered; s++ {
		if strings.EqualFold(s.String(), name) {
			return s, nil
		}
	}
	return 0, fmt.Errorf("state %q is none of active, draining, suspect, lost, deregistered", name)
}

func (t *trial) file(flag, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(t.in, maxTrial))
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", flag, err))
	}
	return b, nil
}

// parse rejects unknown keys, because a misspelt key would silently have no effect.
func (t *trial) parse(flag, name string, into any) error {
	b, err := t.file(flag, name)
	if err != nil {
		return err
	}
	if err := strictjson.Unmarshal(b, into); err != nil {
		return usage(fmt.Errorf("%s %s has unexpected JSON: %w", flag, name, err))
	}
	return nil
}

func (t *trial) decide() tryDoc {
	out := tryDoc{Queue: t.submission.Queue, Policy: t.from}
	var err error
	if out.Home, out.Reason, err = t.policy.Home(t.view, t.submission, nil, t.rnd); err != nil {
		out.Error = err.Error()
		return out
	}
	var reach []policies.Reach
	for _, m := range t.view.Members {
		reach = append(reach, policies.Reach{Member: m.ID, Home: m.ID == out.Home})
	}
	for i, a := range t.asks {
		g := policies.Group{
			Count: a.Count, Size: creel.NewResource(a.MemoryMB, a.VCores), Label: a.Label, Strict: a.Strict,
		}
		for _, p := range a.Places {
			g.Places = append(g.Places, policies.Place{Name: p.Name, Count: p.Count, Members: p.Members})
		}
		plan, err := t.policy.Split(t.view, t.submission.Queue, g, reach, t.rnd)
		s := splitDoc{Ask: i, Shares: map[string]int64{}, Reason: plan.Reason}
		if err != nil {
			s.Error = err.Error()
		}
		for _, share := range plan.Shares {
			s.Shares[string(share.Member)] = share.Count
			for j := range reach { // the next ask sees the containers of this one
				if reach[j].Member == share.Member {
					reach[j].Pending += share.Count
					reach[j].UAM = !reach[j].Home
				}
			}
		}
		out.Splits = append(out.Splits, s)
	}
	return out
}

func (d tryDoc) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "queue %s, policy of %s\n", d.Queue, d.Policy)
	if d.Error != "" {
		fmt.Fprintf(&b, "no home: %s\n", d.Error)
	}
	fmt.Fprintf(&b, "home: %s\n", d.Reason)
	for _, s := range d.Splits {
		fmt.Fprintf(&b, "ask %d: %s\n", s.Ask, s.Reason)
		if s.Error != "" {
			fmt.Fprintf(&b, "  refused: %s\n", s.Error)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
