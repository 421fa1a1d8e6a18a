// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// A list of applications is made of the bytes that members sent. A report from only one member is neither decoded nor
// encoded, so unknown fields survive. Decoding and encoding were two thirds of the cost of a list.

// appReport is an encoded ApplicationReportProto from a member, and the fields that the merge reads.
type appReport struct {
	raw       []byte
	id        creel.ApplicationID
	unmanaged bool
	uam       bool  // see creel.IsUAM
	start     int64 // ms since the epoch
}

// Fields of ApplicationReportProto, of ApplicationIdProto, and of the response with the list.
const (
	fieldReportID        protowire.Number = 1
	fieldReportName      protowire.Number = 4
	fieldReportState     protowire.Number = 8
	fieldReportStart     protowire.Number = 11
	fieldReportTags      protowire.Number = 20
	fieldReportLogs      protowire.Number = 21
	fieldReportUnmanaged protowire.Number = 22
	fieldIDNumber        protowire.Number = 1
	fieldIDTimestamp     protowire.Number = 2
	fieldApplications    protowire.Number = 1
)

// GetApplications lists the applications of all members, each once.
func (h *Handler) GetApplications(
	ctx context.Context,
	req *yarnpb.GetApplicationsRequestProto,
) (*yarnpb.GetApplicationsResponseProto, error) {
	yarnrpc.ListKnown(req) // a client's value of this field is ignored
	yarnrpc.Parts(req)
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return nil, err
	}
	question := user(ctx) + "\x00" + string(body)
	parts, err := askAll(ctx, h, remote.List, "getApplications",
		func(m creel.SubclusterID, send sender) (appReports, error) {
			return h.reports(ctx, question, m, body, send)
		})
	if gone := ctx.Err(); gone != nil {
		return nil, gone
	}
	if h.long.Lately(question, parts); len(server.Old(parts)) > 0 {
		err = without(h, "getApplications", parts)
	}
	if err != nil {
		return nil, err
	}
	limit := 0
	if req.Limit != nil && req.GetLimit() < 1<<31 {
		limit = int(req.GetLimit())
	}
	made := func(copies server.Copies) []byte {
		return joinApplications(h.server, pick(parts, ofNow), limit, copies)
	}
	whole, err := h.long.Whole(ctx, question, parts, func() server.Made[[]appReport] {
		copies := server.Copies{}
		return server.Made[[]appReport]{Whole: made(copies), Share: func(part []appReport) ([]appReport, int) {
			return sharedReports(part, copies)
		}}
	})
	if err != nil {
		return nil, err
	}
	if whole == nil {
		whole = made(nil)
	}
	return yarnpb.Encoded(&yarnpb.GetApplicationsResponseProto{}, whole), nil
}

// sharedReports returns reports whose bytes are in a whole list, and the bytes of those that are not.
func sharedReports(part []appReport, copies server.Copies) (shared []appReport, own int) {
	shared = slices.Clone(part)
	for i := range shared {
		var n int
		shared[i].raw, n = copies.Of(shared[i].raw)
		own += n
	}
	return shared, own
}

// ofNow returns a part's reports. If the part is Late, it marks them as old.
func ofNow(p appReports) []appReport {
	if p.Late == nil {
		return p.Value
	}
	said := server.AsOf(p.Age, p.Late)
	old := make([]appReport, len(p.Value))
	for i, a := range p.Value {
		old[i] = a
		var r yarnpb.ApplicationReportProto
		if r.UnmarshalVT(a.raw) != nil {
			continue
		}
		r.Diagnostics = proto.String(said + r.GetDiagnostics())
		if raw, err := r.MarshalVT(); err == nil {
			old[i].raw = raw
		}
	}
	return old
}

// appReports is a member's part of a list.
type appReports = server.ListPart[[]appReport]

// reports asks a member for its part of a list, or whether its previous part is unchanged.
func (h *Handler) reports(
	ctx context.Context, question string, member creel.SubclusterID, body []byte, send sender,
) (appReports, error) {
	return h.long.Part(question, member, func(tag string) (appReports, error) {
		answer, err := send(yarnrpc.WithListKnown(yarnrpc.WithParts(body), tag))
		if err = cmp.Or(err, ctx.Err()); err != nil { // the client has gone: do not parse the answer
			return appReports{}, err
		}
		is := yarnrpc.ListTag(answer)
		if is != "" && is == tag {
			return appReports{Tag: is}, nil
		}
		list, err := readApplications(answer)
		return appReports{Value: list, Tag: is, Bytes: len(answer)}, err
	})
}

// joinApplications merges the members' parts into one encoded list of at most limit applications, 0 for all. It
// records their places in copies.
func joinApplications(
	s *server.Server, parts []router.Part[[]appReport], limit int, copies server.Copies,
) []byte {
	apps, _ := router.MergeApps(parts, rawFields(s), s.HomeSeen, limit)
	size := 0
	for i := range apps {
		size += protowire.SizeTag(fieldApplications) + protowire.SizeBytes(len(apps[i].raw))
	}
	list := make([]byte, 0, size)
	for i := range apps {
		list = protowire.AppendTag(list, fieldApplications, protowire.BytesType)
		list = protowire.AppendBytes(list, apps[i].raw)
		copies.Add(apps[i].raw, list[len(list)-len(apps[i].raw):])
	}
	return list
}

// joinReports merges members' reports into one list.
func joinReports(
	s *server.Server, parts []router.Part[[]*yarnpb.ApplicationReportProto],
) []*yarnpb.ApplicationReportProto {
	for _, p := range parts {
		for _, r := range p.Value {
			if of, ok := router.UAMOf(r.GetUnmanagedApplication(), r.GetApplicationTags()); ok {
				r.ApplicationId = yarnpb.FromApplicationID(of)
			}
		}
	}
	fields := appFields()
	fields.Join = func(same []router.Part[*yarnpb.ApplicationReportProto]) *yarnpb.ApplicationReportProto {
		return merge(s, same)
	}
	if s.ListsUAMs() {
		fields.Part = nil
	}
	apps, _ := router.MergeApps(parts, fields, s.HomeSeen, 0)
	return apps
}

// rawFields reads application reports for the merge rule.
func rawFields(s *server.Server) router.AppFields[appReport] {
	part := func(a appReport) bool { return a.uam }
	if s.ListsUAMs() {
		part = nil
	}
	return router.AppFields[appReport]{
		Part:      part,
		ID:        func(a appReport) creel.ApplicationID { return a.id },
		Unmanaged: func(a appReport) bool { return a.unmanaged },
		Start:     func(a appReport) int64 { return a.start },
		Join: func(same []router.Part[appReport]) appReport {
			reports := make([]router.Part[*yarnpb.ApplicationReportProto], 0, len(same))
			for _, p := range same {
				r := &yarnpb.ApplicationReportProto{}
				if err := r.UnmarshalVT(p.Value.raw); err == nil { // an unreadable report is left out
					reports = append(reports, router.Part[*yarnpb.ApplicationReportProto]{Member: p.Member, Value: r})
				}
			}
			out := same[0].Value
			if len(reports) > 0 {
				if raw, err := merge(s, reports).MarshalVT(); err == nil {
					out.raw = raw
				}
			}
			return out
		},
	}
}

// readApplications splits a member's encoded list.
func readApplications(b []byte) ([]appReport, error) {
	var out []appReport
	for len(b) > 0 {
		num, typ, value, n := yarnpb.Cut(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		b = b[n:]
		if num != fieldApplications || typ != protowire.BytesType {
			continue
		}
		raw, _ := protowire.ConsumeBytes(value)
		a, err := readReport(raw)
		if err != nil {
			return nil, err
		}
		if out == nil {
			// Reports have similar lengths. The bound of 64 limits the allocation to about the size of the answer.
			out = make([]appReport, 0, 1+len(b)/max(len(raw), 64))
		}
		out = append(out, a)
	}
	return out, nil
}

var errShape = errors.New("a field of a report has another type than YARN's")

// readReport reads the fields of a report that the merge needs. If a UAM has another id than its application, it gets
// the application's.
func readReport(raw []byte) (appReport, error) {
	a := appReport{raw: raw}
	var room [8][]byte
	tags := room[:0]
	var name []byte
	for b := raw; len(b) > 0; {
		num, typ, value, n := yarnpb.Cut(b)
		if n < 0 {
			return a, protowire.ParseError(n)
		}
		b = b[n:]
		ok := true
		switch num {
		case fieldReportID:
			if ok = typ == protowire.BytesType; ok {
				id, _ := protowire.ConsumeBytes(value)
				ok = readID(id, &a.id)
			}
		case fieldReportName:
			if ok = typ == protowire.BytesType; ok {
				name, _ = protowire.ConsumeBytes(value)
			}
		case fieldReportStart:
			start, _ := protowire.ConsumeVarint(value)
			a.start, ok = int64(start), typ == protowire.VarintType
		case fieldReportUnmanaged:
			flag, _ := protowire.ConsumeVarint(value)
			a.unmanaged, ok = flag != 0, typ == protowire.VarintType
		case fieldReportTags:
			if ok = typ == protowire.BytesType; ok {
				tag, _ := protowire.ConsumeBytes(value)
				tags = append(tags, tag)
			}
		}
		if !ok {
			return a, errShape
		}
	}
	if !a.unmanaged {
		return a, nil
	}
	texts := make([]string, len(tags))
	for i, t := range tags {
		texts[i] = string(t)
	}
	a.uam = creel.IsUAM(true, string(name), texts)
	if of, ok := router.UAMOf(true, texts); ok {
		r := &yarnpb.ApplicationReportProto{}
		if err := r.UnmarshalVT(raw); err != nil {
			return a, err
		}
		r.ApplicationId = yarnpb.FromApplicationID(of)
		var err error
		if a.raw, err = r.MarshalVT(); err != nil {
			return a, err
		}
		a.id = of
	}
	return a, nil
}

// readID reads an ApplicationIdProto; false if it is invalid.
func readID(b []byte, id *creel.ApplicationID) bool {
	for len(b) > 0 {
		num, typ, value, n := yarnpb.Cut(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		if num == fieldIDNumber || num == fieldIDTimestamp {
			if typ != protowire.VarintType {
				return false
			}
			v, _ := protowire.ConsumeVarint(value)
			if num == fieldIDNumber {
				id.ID = int32(v)
			} else {
				id.ClusterTimestamp = int64(v)
			}
		}
	}
	return true
}
