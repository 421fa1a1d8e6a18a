// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/creelrm/creel"
)

// FederationClass is the class of the one document with the name of the federation that owns the store.
const FederationClass = "federation"

// JoinFederation returns the name of the federation that owns the store, "" for none. A store without one gets the
// caller's, by compare-and-set; a name that differs from the store's is an error (creel.ErrNotPermitted). Two
// federations that share a store by mistake would send each other their applications.
func JoinFederation(ctx context.Context, s Documents, name string) (owner string, err error) {
	const document = "name"
	for {
		before, err := s.DocumentOf(ctx, FederationClass, document, nil)
		if err != nil {
			return "", err
		}
		if len(before.Data) > 0 {
			if err := json.Unmarshal(before.Data, &owner); err != nil {
				return "", failf(creel.ErrInvalidRequest, "restore the store from a backup",
					"the federation's name in the state store cannot be read", "it is %.60q", before.Data)
			}
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
		data, err := json.Marshal(name)
		if err != nil {
			return "", err
		}
		_, err = s.PutDocument(ctx, DocumentWrite{
			Class: FederationClass, Name: document, Expect: before.Version, Data: data, Quiet: true,
		})
		if !errors.Is(err, creel.ErrConflict) {
			return name, err
		}
	}
}
