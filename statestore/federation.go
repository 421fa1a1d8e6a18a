// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/creelrm/creel"
)

// FederationClass is the class of the one document with the name of the federation that owns the store.
const FederationClass = "federation"

const federationName = "name"

// JoinFederation returns the name of the federation that owns the store, "" for none. A store without one gets the
// caller's, by compare-and-set; a name that differs from the store's is an error (creel.ErrNotPermitted). Two
// federations that share a store by mistake would send each other their applications.
func JoinFederation(ctx context.Context, s Documents, name string) (owner string, err error) {
	for {
		owner, before, err := federationOf(ctx, s)
		if err != nil {
			return "", err
		}
		if owner != "" {
			if name != "" && owner != name {
				return owner, &creel.Error{
					Kind: creel.ErrNotPermitted,
					What: fmt.Sprintf("the state store belongs to federation %q", owner),
					Why:  fmt.Sprintf("this process is configured for federation %q", name),
					Try: "set creel.federation.name=" + owner +
						", or give this federation its own creel.store.prefix or database",
				}
			}
			return owner, nil
		}
		if name == "" {
			return "", nil
		}
		if err = putFederation(ctx, s, before.Version, name, ""); !errors.Is(err, creel.ErrConflict) {
			return name, err
		}
	}
}

// federationOf reads the name of the federation that owns the store, "" for none, and its document.
func federationOf(ctx context.Context, s Documents) (owner string, d Document, err error) {
	d, err = s.DocumentOf(ctx, FederationClass, federationName, nil)
	if err != nil || len(d.Data) == 0 {
		return "", d, err
	}
	if err := json.Unmarshal(d.Data, &owner); err != nil {
		return "", d, failf(creel.ErrInvalidRequest, "restore the store from a backup",
			"the federation's name in the state store cannot be read", "it is %.60q", d.Data)
	}
	return owner, d, nil
}

func putFederation(ctx context.Context, s Documents, expect int64, name, author string) error {
	data, err := json.Marshal(name)
	if err != nil {
		return err
	}
	_, err = s.PutDocument(ctx, DocumentWrite{
		Class: FederationClass, Name: federationName, Expect: expect, Data: data, Author: author, Quiet: true,
	})
	return err
}

// Rename is a change of a federation's name.
type Rename struct {
	From, To, Author string
	// AcceptRunning permits it while processes of the federation run. They continue. But they do not start again
	// before their configuration has the new name.
	AcceptRunning bool
}

// RenameFederation changes the name of the federation that owns the store. A repeat is success. The error is of kind
// creel.ErrNotPermitted if the store belongs to another federation or to none, and creel.ErrConflict if processes of
// the federation run.
func RenameFederation(ctx context.Context, s interface {
	Documents
	Members
	Daemons
}, r Rename,
) error {
	if err := CheckName("name of a federation", r.To); err != nil {
		return err
	}
	for {
		owner, before, err := federationOf(ctx, s)
		switch {
		case err != nil:
			return err
		case owner == r.To:
			return nil
		case owner != r.From || owner == "":
			return &creel.Error{
				Kind: creel.ErrNotPermitted,
				What: fmt.Sprintf("the state store does not belong to federation %q", r.From),
				Why:  fmt.Sprintf("its federation is %q", owner),
				Try:  "check creel.store.url and creel.store.prefix",
			}
		}
		if !r.AcceptRunning {
			if err := noneRuns(ctx, s, owner); err != nil {
				return err
			}
		}
		if err := putFederation(ctx, s, before.Version, r.To, r.Author); !errors.Is(err, creel.ErrConflict) {
			return err
		}
	}
}

// noneRuns returns an error with the running processes of a federation, nil if there are none.
func noneRuns(ctx context.Context, s interface {
	Members
	Daemons
}, federation string,
) error {
	records, err := s.Records(ctx)
	if err != nil {
		return err
	}
	var running []string
	for i := range records.Members {
		m := &records.Members[i]
		if !m.Deregistered && records.Now.Sub(m.Heartbeat) < 3*m.LeaseOrDefault() {
			running = append(running, "the ResourceManager or agent of "+string(m.ID))
		}
	}
	for cursor := ""; ; {
		page, next, err := s.Daemons(ctx, cursor, MaxPage)
		if err != nil {
			return err
		}
		for i := range page {
			running = append(running, fmt.Sprintf("%s %s on %s", page[i].Kind, page[i].Name, page[i].Host))
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if len(running) == 0 {
		return nil
	}
	const most = 5
	more := ""
	if n := len(running) - most; n > 0 {
		running, more = running[:most], fmt.Sprintf(" and %d more", n)
	}
	return &creel.Error{
		Kind: creel.ErrConflict,
		What: fmt.Sprintf("processes of federation %q run", federation),
		Why: "they could not start again with their present configuration: " + strings.Join(running, ", ") +
			more,
		Try: "stop them, or accept them with --accept-running, and set creel.federation.name before they start again",
	}
}
