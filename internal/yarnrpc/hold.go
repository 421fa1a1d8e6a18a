// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// With these verbs a router moves a waiting application from one creel ResourceManager to another
// (docs/adr/0021-moving-waiting-applications.md). A ResourceManager without support for the fields answers with a
// report, or with an error for an unknown application. The router detects that.

// HoldVerb is an operation on an application during a move.
type HoldVerb int

// The verbs.
const (
	NoHoldVerb HoldVerb = iota
	Hold
	ReleaseHold
	DropHeld
)

var holdFields = [...]protowire.Number{Hold: pb.FieldHold, ReleaseHold: pb.FieldRelease, DropHeld: pb.FieldDrop}

// WithHold returns an encoded GetApplicationReportRequestProto that asks for a verb under the number of a claim.
func WithHold(request []byte, verb HoldVerb, claim int64, reason string) []byte {
	out := pb.AppendNumber(request[:len(request):len(request)], holdFields[verb], claim)
	if reason != "" {
		out = pb.AppendText(out, pb.FieldReason, reason)
	}
	return out
}

// HoldWanted returns the verb in a request; NoHoldVerb if the request only asks for the report.
func HoldWanted(r *pb.GetApplicationReportRequestProto) (verb HoldVerb, claim int64, reason string) {
	unknown := r.ProtoReflect().GetUnknown()
	for verb := Hold; verb <= DropHeld; verb++ {
		if claim := pb.NumberIn(unknown, holdFields[verb]); claim > 0 {
			return verb, claim, string(pb.BytesIn(unknown, pb.FieldReason))
		}
	}
	return NoHoldVerb, 0, ""
}

// MovedApplication is the data of an application that its old home sends to its next home.
type MovedApplication struct {
	Message []byte // an encoded ApplicationSubmissionContextProto
	User    string
	Since   time.Time     // time of submission, by the clock of its first home, to the ms
	Left    time.Duration // rest of its lifetime, to the ms; 0: no limit
}

// HoldAnswer returns the answer that confirms a verb; c is nil except for Hold.
func HoldAnswer(verb HoldVerb, claim int64, c *MovedApplication) *pb.GetApplicationReportResponseProto {
	b := pb.AppendNumber(nil, holdFields[verb], claim)
	if c != nil {
		b = pb.AppendText(b, pb.FieldSubmission, c.Message)
		b = pb.AppendText(b, pb.FieldUser, c.User)
		b = appendTimes(b, c)
	}
	r := &pb.GetApplicationReportResponseProto{}
	r.ProtoReflect().SetUnknown(b)
	return r
}

func appendTimes(b []byte, c *MovedApplication) []byte {
	b = pb.AppendNumber(b, pb.FieldSince, c.Since.UnixMilli())
	if c.Left > 0 {
		b = pb.AppendNumber(b, pb.FieldLifetime, max(1, c.Left.Milliseconds()))
	}
	return b
}

// HoldDone reports whether an encoded answer to getApplicationReport confirms a verb. If the application is held, it
// also returns the data to be moved.
func HoldDone(answer []byte, verb HoldVerb, claim int64) (c MovedApplication, done bool) {
	if pb.NumberIn(answer, holdFields[verb]) < claim {
		return MovedApplication{}, false
	}
	c = MovedApplication{
		Message: pb.BytesIn(answer, pb.FieldSubmission), User: string(pb.BytesIn(answer, pb.FieldUser)),
	}
	c.Since, c.Left = timesIn(answer)
	return c, true
}

// SubmissionOf returns the encoded SubmitApplicationRequestProto of an application from another home, with the number
// of a claim.
func SubmissionOf(c *MovedApplication, claim int64) []byte {
	const fieldContext = 1
	b := protowire.AppendTag(nil, fieldContext, protowire.BytesType)
	b = protowire.AppendBytes(b, c.Message)
	return WithClaim(appendTimes(b, c), claim)
}

// CarriedOf returns the time of submission and the rest of the lifetime of an application from another home. Both are
// zero for other applications.
func CarriedOf(r *pb.SubmitApplicationRequestProto) (since time.Time, left time.Duration) {
	return timesIn(r.ProtoReflect().GetUnknown())
}

func timesIn(b []byte) (since time.Time, left time.Duration) {
	if ms := pb.NumberIn(b, pb.FieldSince); ms > 0 {
		since = time.UnixMilli(ms).UTC()
	}
	return since, time.Duration(min(pb.NumberIn(b, pb.FieldLifetime), mostLeft)) * time.Millisecond
}

// mostLeft bounds a lifetime, in ms, to the range of a Duration.
const mostLeft = int64(1<<63-1) / int64(time.Millisecond)
