// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// Fields that are not Hadoop's, by which a router and a ResourceManager of ours
// keep an application at one home (package router). A ResourceManager that does
// not know them ignores them, and a router sees that in its answer.
//
//   - fieldClaim, in SubmitApplicationRequestProto: the number of the claim
//     under which a router forwards the submission.
//   - fieldDisown, in GetApplicationReportRequestProto: refuse the application
//     for ever under claims up to this number, unless you have it. In the
//     answer, which then has no report: that is done and durable.
const (
	fieldClaim  protowire.Number = 15002
	fieldDisown protowire.Number = 15003
)

// WithClaim returns an encoded SubmitApplicationRequestProto with the number of
// a claim. The request itself is not changed.
func WithClaim(request []byte, claim int64) []byte {
	return appendNumber(request[:len(request):len(request)], fieldClaim, claim)
}

// ClaimOf returns the number of the claim a submission was forwarded under, 0
// if it did not come through a router.
func ClaimOf(r *pb.SubmitApplicationRequestProto) int64 {
	return numberIn(r.ProtoReflect().GetUnknown(), fieldClaim)
}

// WithDisown returns an encoded GetApplicationReportRequestProto that asks to
// disown the application.
func WithDisown(request []byte, claim int64) []byte {
	return appendNumber(request[:len(request):len(request)], fieldDisown, claim)
}

// DisownWanted returns the number up to which claims are to be refused, 0 if
// the request only asks for the report.
func DisownWanted(r *pb.GetApplicationReportRequestProto) int64 {
	return numberIn(r.ProtoReflect().GetUnknown(), fieldDisown)
}

// DisownedAnswer returns the answer that tells that an application is disowned.
func DisownedAnswer(claim int64) *pb.GetApplicationReportResponseProto {
	r := &pb.GetApplicationReportResponseProto{}
	r.ProtoReflect().SetUnknown(appendNumber(nil, fieldDisown, claim))
	return r
}

// IsDisowned reports whether an encoded answer to getApplicationReport tells
// that the application is disowned under claim.
func IsDisowned(answer []byte, claim int64) bool { return numberIn(answer, fieldDisown) >= claim }

func appendNumber(b []byte, field protowire.Number, n int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
}

// numberIn returns the positive number in a field, 0 if there is none. Of several
// the last counts, as everywhere in protobuf: the router's word is behind what a
// client may have put there.
func numberIn(fields []byte, field protowire.Number) (number int64) {
	for len(fields) > 0 {
		num, typ, n := protowire.ConsumeTag(fields)
		if n < 0 {
			return 0
		}
		if num == field && typ == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(fields[n:])
			number = max(int64(v), 0)
		}
		m := protowire.ConsumeFieldValue(num, typ, fields[n:])
		if m < 0 {
			return 0
		}
		fields = fields[n+m:]
	}
	return number
}
