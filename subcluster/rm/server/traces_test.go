// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc/telemetry"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
)

// An unmanaged AM, such as a proxy's in a secondary subcluster, has no container and no
// launch: its trace goes on with its registration.
func TestAnUnmanagedAMIsTracedWithoutAContainer(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	defer func() { _ = provider.Shutdown(context.Background()) }()
	ctx, request := provider.Tracer("test").Start(t.Context(), "submitApplication")
	kept := &pb.ApplicationSubmissionContextProto{}
	yarnrpc.SetTrace(kept, telemetry.Kept(ctx))
	request.End()

	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	attempt := creel.AttemptID{Application: id, Attempt: 1}
	followed := &traces{provider: provider}
	followed.begin(id, kept)
	followed.launching(rm.LaunchAM{Attempt: attempt, Unmanaged: true})
	followed.registered(id)
	followed.ended(id)

	var names []string
	for _, s := range spans.GetSpans() {
		names = append(names, s.Name)
	}
	want := []string{"submitApplication", stageJournal, stageRegister, stageEnd}
	if slices.Sort(names); !slices.Equal(names, slices.Sorted(slices.Values(want))) {
		t.Errorf("spans are %q, want %q", names, want)
	}
}
