// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// reportMethod is the call for an application's report.
const reportMethod = "getApplicationReport"

// report is an answer to getApplicationReport.
type report struct {
	raw []byte                         // home's answer, or the joined one
	uam *yarnpb.ApplicationReportProto // the report of a UAM
}

// reportCall is a call of getApplicationReport.
type reportCall struct {
	server  *server.Server
	user    string
	app     creel.ApplicationID
	request []byte
}

var _ server.ReportCall[report] = (*reportCall)(nil)

// reportedApp reads the application of a call of getApplicationReport.
var reportedApp = appOf(func(r *yarnpb.GetApplicationReportRequestProto) *yarnpb.ApplicationIdProto {
	return r.GetApplicationId()
})

// report serves getApplicationReport.
func (h *Handler) report(ctx context.Context, request []byte) ([]byte, error) {
	app, err := reportedApp(request)
	if err != nil {
		return nil, err
	}
	caller := user(ctx)
	r, err := server.Report(ctx, h.server, app, caller, server.RPC, &reportCall{h.server, caller, app, request})
	return r.raw, err
}

// AtHome implements server.ReportCall.
func (c *reportCall) AtHome(ctx context.Context, home *remote.Member) (report, error) {
	raw, err := home.Client(ctx, remote.Read, c.user, reportMethod, c.request)
	return report{raw: raw}, err
}

var errNoReport = errors.New("its answer has no report")

// UAM implements server.ReportCall.
func (c *reportCall) UAM(ctx context.Context, m *remote.Member, id creel.ApplicationID) (report, error) {
	request, err := proto.Marshal(
		&yarnpb.GetApplicationReportRequestProto{ApplicationId: yarnpb.FromApplicationID(id)},
	)
	if err != nil {
		return report{}, err
	}
	answer, err := parsed[yarnpb.GetApplicationReportResponseProto](
		m.Client(ctx, remote.Read, c.user, reportMethod, request))
	if err == nil && answer.GetApplicationReport() == nil {
		err = errNoReport
	}
	return report{uam: answer.GetApplicationReport()}, err
}

// Absent implements server.ReportCall.
func (*reportCall) Absent(err error) bool { return notHere(err) }

// Facts implements server.ReportCall. It reads two fields of the encoded report.
func (*reportCall) Facts(own report) server.ReportFacts {
	r := yarnpb.BytesIn(own.raw, 1)
	return server.ReportFacts{
		State: creel.ApplicationState(yarnpb.NumberIn(r, fieldReportState)),
		Logs:  creel.LogAggregationStatus(yarnpb.NumberIn(r, fieldReportLogs)),
	}
}

// IsUAM implements server.ReportCall.
func (*reportCall) IsUAM(r report) bool { return isUAM(r.uam) }

// isUAM reports whether an application is a UAM.
func isUAM(r *yarnpb.ApplicationReportProto) bool {
	return creel.IsUAM(r.GetUnmanagedApplication(), r.GetName(), r.GetApplicationTags())
}

// Join implements server.ReportCall. Reports have no field for missing parts but their diagnostics.
func (c *reportCall) Join(_ context.Context, own router.Part[report], uams, without []router.Part[report]) report {
	if len(uams) == 0 && len(without) == 0 {
		return own.Value
	}
	whole, err := parsed[yarnpb.GetApplicationReportResponseProto](own.Value.raw, nil)
	if err != nil {
		return own.Value
	}
	same := []router.Part[*yarnpb.ApplicationReportProto]{{Member: own.Member, Value: whole.GetApplicationReport()}}
	for _, p := range uams {
		p.Value.uam.ApplicationId = yarnpb.FromApplicationID(c.app)
		same = append(same, router.Part[*yarnpb.ApplicationReportProto]{Member: p.Member, Value: p.Value.uam})
	}
	whole.ApplicationReport = merge(c.server, same)
	if len(without) > 0 {
		missing := make([]router.MissingMember, len(without))
		for i, p := range without {
			missing[i] = router.MissingMember{Member: p.Member, Reason: said(p.Err)}
		}
		words := "This report lacks its parts in " + router.MissingText(missing) + ". "
		whole.ApplicationReport.Diagnostics = proto.String(words + whole.ApplicationReport.GetDiagnostics())
	}
	raw, err := proto.Marshal(whole)
	if err != nil {
		return own.Value
	}
	return report{raw: raw}
}

// Remembered implements server.ReportCall.
func (*reportCall) Remembered(r report) []byte { return r.raw }

// Old implements server.ReportCall.
func (*reportCall) Old(last server.OldReport) (report, bool) {
	var r yarnpb.GetApplicationReportResponseProto
	if parse(last.Bytes, &r) != nil || r.GetApplicationReport() == nil {
		return report{}, false
	}
	r.ApplicationReport.Diagnostics = proto.String(last.Text + r.ApplicationReport.GetDiagnostics())
	raw, err := proto.Marshal(&r)
	return report{raw: raw}, err == nil
}
