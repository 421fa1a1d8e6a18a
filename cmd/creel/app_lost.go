// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
)

// lostApp is the last known report of an application whose home does not answer.
type lostApp struct {
	ID    string             `json:"id"`
	User  string             `json:"user,omitempty"`
	Queue string             `json:"queue,omitempty"`
	State string             `json:"state,omitempty"`
	Home  creel.SubclusterID `json:"home"`
	// AgeSeconds is the age of the other fields, -1 if unknown.
	AgeSeconds float64 `json:"age_s"`

	doc whyDoc
}

// ofLost returns the error of a read about an application, and its last known report if its home does not answer. The
// error then has exit code 7 and the home's name. It is the same error if another cause is possible.
func (f *clientFlags) ofLost(ctx context.Context, id creel.ApplicationID, err error) (*lostApp, error) {
	if exitCode(err) != exitUnreachable {
		return nil, err
	}
	doc, unknown := f.why(ctx, id)
	if unknown != nil || doc.Home == "" || len(doc.Waits) == 0 || doc.Waits[0].Error == "" {
		return nil, err
	}
	a := &lostApp{ID: id.String(), Queue: string(doc.Queue), Home: doc.Home, AgeSeconds: -1, doc: doc}
	if l := doc.Last; l != nil {
		a.User, a.State, a.AgeSeconds = l.User, l.State, l.AgeSeconds
		a.Queue = cmp.Or(string(l.Queue), a.Queue)
	}
	return a, &exitError{exitPartial, fmt.Errorf("partial: missing %s, the home of %s: %s", doc.Home, id,
		doc.Waits[0].Error)}
}

func (a *lostApp) write(w io.Writer) error {
	age := "unknown"
	if a.AgeSeconds >= 0 {
		age = units.Age(a.AgeSeconds) + " ago"
	}
	for _, line := range [][2]string{
		{"id", a.ID}, {"user", a.User}, {"queue", a.Queue}, {"state", a.State}, {"home", string(a.Home)}, {"seen", age},
	} {
		if line[1] != "" {
			fmt.Fprintf(w, "%-14s %s\n", line[0], line[1])
		}
	}
	a.doc.writeChanges(w)
	return nil
}
