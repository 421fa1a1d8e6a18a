// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/rebuild"
	"github.com/creelrm/creel/statestore/tidy"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// rebuildPart is the loop of a router that writes homes back into a store which
// came back empty. The store in memory cannot: it goes with its process.
func rebuildPart(store statestore.Store, view func() *subcluster.View, pool *remote.Pool, log *slog.Logger) []part {
	s, ok := store.(rebuild.Store)
	if !ok {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "router"
	}
	r := rebuild.New(
		s,
		rebuild.Config{View: view, Name: fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()), Log: log,
			Ask: func(ctx context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error) {
				return runsAt(ctx, pool.Member(m))
			},
			End: func(ctx context.Context, m *subcluster.Status, app creel.ApplicationID) error {
				return endAt(ctx, pool.Member(m), app)
			}},
	)
	return []part{{"store rebuild", r.Run}}
}

// tidyPart is the loop of a router that lets the store forget what has ended.
func tidyPart(
	store tidy.Store,
	ttl time.Duration,
	view func() *subcluster.View,
	pool *remote.Pool,
	log *slog.Logger,
) part {
	return part{"store tidy", tidy.New(store, tidy.Config{View: view, TTL: ttl, Name: "router-" + rand.Text(), Log: log,
		Ask: func(ctx context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error) {
			return runsAt(ctx, pool.Member(m))
		}}).Run}
}

// runsAt is what a member says it has.
func runsAt(ctx context.Context, m *remote.Member) ([]statestore.ReportedApplication, error) {
	b, err := m.Client(ctx, remote.List, "", "getApplications", nil)
	if err != nil {
		return nil, err
	}
	var list yarnpb.GetApplicationsResponseProto
	if err := proto.Unmarshal(b, &list); err != nil {
		return nil, err
	}
	out := make([]statestore.ReportedApplication, 0, len(list.GetApplications()))
	for _, a := range list.GetApplications() {
		state := a.GetYarnApplicationState()
		out = append(out, statestore.ReportedApplication{
			ID:        yarnpb.ToApplicationID(a.GetApplicationId()),
			Unmanaged: a.GetUnmanagedApplication(),
			Ended: state == yarnpb.YarnApplicationStateProto_FINISHED ||
				state == yarnpb.YarnApplicationStateProto_FAILED ||
				state == yarnpb.YarnApplicationStateProto_KILLED,
			Attempt:   a.GetCurrentApplicationAttemptId().GetAttemptId(),
			Submitted: time.UnixMilli(a.GetStartTime()),
		})
	}
	return out, nil
}

// endAt kills an application at a member, and waits until it has ended.
func endAt(ctx context.Context, m *remote.Member, app creel.ApplicationID) error {
	request, err := proto.Marshal(
		&yarnpb.KillApplicationRequestProto{
			ApplicationId: yarnpb.FromApplicationID(app),
			Diagnostics:   proto.String("its home is another subcluster"),
		},
	)
	if err != nil {
		return err
	}
	for {
		b, err := m.Client(ctx, remote.Write, "", "forceKillApplication", request)
		if errors.Is(err, creel.ErrApplicationNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		var done yarnpb.KillApplicationResponseProto
		if err := proto.Unmarshal(b, &done); err != nil || done.GetIsKillCompleted() {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
