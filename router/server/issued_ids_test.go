// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/routertest"
)

// An invented id above those that its member issued would take the id that another client is to get. It is rejected,
// before any home is recorded, by an error that Hadoop's clients show to their user and do not retry. Ids that a
// member issued without this router, or in an earlier start, are accepted.
func TestUnissuedIDIsRefused(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol.name, func(t *testing.T) {
			f := routertest.Start(t, routertest.Options{})
			r := f.Routers[0]
			submit := func(id creel.ApplicationID) error { return protocol.submit(t.Context(), f, r, id) }
			past := f.Members[0].NewApplicationID()
			forged := past
			forged.ID += 100
			err := submit(forged)
			if err == nil || !strings.Contains(err.Error(), "never issued") {
				t.Fatalf("a forged id is answered %v", err)
			}
			var told *hrpc.RemoteError
			if protocol.name == "RPC" && (!errors.As(err, &told) || told.Class != yarnrpc.ClassYarn) {
				t.Errorf("clients are told %v", err)
			}
			if protocol.name == "REST" && !strings.HasPrefix(err.Error(), "400") {
				t.Errorf("clients are told %v", err)
			}
			if home, err := f.Store.Home(t.Context(), forged); err == nil {
				t.Errorf("a forged id has the home %s", home)
			}
			earlier := past
			earlier.ClusterTimestamp -= 86_400_000
			earlier.ID = 4711
			for what, id := range map[string]creel.ApplicationID{
				"given past this router": past, "given before a restart": earlier, "given by this router": newID(t, f, r),
			} {
				if err := submit(id); err != nil {
					t.Errorf("an id %s: %v", what, err)
				}
				if err := submit(id); err != nil {
					t.Errorf("a repeat of an id %s: %v", what, err)
				}
			}
		})
	}
}

// The id of an existing application, by another user: the home rejects it, and that it has the application is no
// success for that user.
func TestForeignIDConflictNamesOwner(t *testing.T) {
	f := routertest.Start(t, routertest.Options{})
	r := f.Routers[0]
	id := newID(t, f, r)
	if err := byRPC(t.Context(), f, r, id); err != nil {
		t.Fatal(err)
	}
	_, err := f.As(r, "bob").SubmitApplication(t.Context(),
		&pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: routertest.Context(id, "story")})
	if err == nil || !strings.Contains(err.Error(), "belongs to alice") {
		t.Errorf("by RPC it is answered %v", err)
	}
	err = postAs(t.Context(), r.Web, "bob", id)
	if err == nil || !strings.HasPrefix(err.Error(), "400") || !strings.Contains(err.Error(), "belongs to alice") {
		t.Errorf("by REST it is answered %v", err)
	}
	once(t, f, id)
}
