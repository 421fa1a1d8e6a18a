// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"math"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// With claims and disowning, routers and creel's ResourceManagers keep an application at one home (package router). A
// ResourceManager without support for the fields ignores them. Its answer shows that to the router.

// WithClaim returns an encoded SubmitApplicationRequestProto with the number of a claim. The request itself is not
// changed.
func WithClaim(request []byte, claim int64) []byte {
	return pb.AppendNumber(request[:len(request):len(request)], pb.FieldClaim, claim)
}

// ClaimOf returns the number of the claim under which a submission was forwarded, or 0 if it did not come through a
// router.
func ClaimOf(r *pb.SubmitApplicationRequestProto) int64 {
	return pb.NumberIn(r.ProtoReflect().GetUnknown(), pb.FieldClaim)
}

// WithDisown returns an encoded GetApplicationReportRequestProto that asks to
// disown the application.
func WithDisown(request []byte, claim int64) []byte {
	return pb.AppendNumber(request[:len(request):len(request)], pb.FieldDisown, claim)
}

// DisownWanted returns the highest number of the claims to be rejected, or 0 if the request only asks for the report.
func DisownWanted(r *pb.GetApplicationReportRequestProto) int64 {
	return pb.NumberIn(r.ProtoReflect().GetUnknown(), pb.FieldDisown)
}

// DisownedAnswer returns the answer for an application that is disowned up to a claim.
func DisownedAnswer(claim int64) *pb.GetApplicationReportResponseProto {
	r := &pb.GetApplicationReportResponseProto{}
	r.ProtoReflect().SetUnknown(pb.AppendNumber(nil, pb.FieldDisown, claim))
	return r
}

// IsDisowned reports whether an encoded answer to getApplicationReport marks the application as disowned under claim.
func IsDisowned(answer []byte, claim int64) bool { return pb.NumberIn(answer, pb.FieldDisown) >= claim }

// HasEnded reports whether an encoded answer to getApplicationReport marks the application as one that ran there, has
// ended and is not listed: it is disowned under every claim.
func HasEnded(answer []byte) bool { return pb.NumberIn(answer, pb.FieldDisown) == math.MaxInt64 }
