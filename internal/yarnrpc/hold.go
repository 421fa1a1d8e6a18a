// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// Fields that are not Hadoop's, by which a router moves an application that waits from
// one ResourceManager of ours to another (docs/adr/0021-moving-waiting-applications.md).
// A ResourceManager that does not know them answers with a report, or that it does not
// know the application, and a router sees that.
//
//   - fieldHold, fieldRelease, fieldDrop, in GetApplicationReportRequestProto: hold the
//     application under the claim of this number, for the reason in fieldReason; release
//     it; drop it. In the answer, which then has no report: that is done and durable.
//   - fieldMessage, fieldUser, fieldSince, fieldLeft, in the answer to a hold: the
//     submission message with the queue and priority of now, its user, when it was
//     submitted and what is left of its lifetime, in ms.
//   - fieldSince, fieldLeft, in SubmitApplicationRequestProto: the same of what comes
//     from another home.
const (
	fieldHold    protowire.Number = 15005
	fieldReason  protowire.Number = 15006
	fieldRelease protowire.Number = 15007
	fieldDrop    protowire.Number = 15008
	fieldMessage protowire.Number = 15009
	fieldUser    protowire.Number = 15010
	fieldSince   protowire.Number = 15011
	fieldLeft    protowire.Number = 15012
)

// HoldVerb is what is to be done with an application that moves.
type HoldVerb int

// The verbs.
const (
	NoHoldVerb HoldVerb = iota
	Hold
	ReleaseHold
	DropHeld
)

var holdFields = [...]protowire.Number{Hold: fieldHold, ReleaseHold: fieldRelease, DropHeld: fieldDrop}

// WithHold returns an encoded GetApplicationReportRequestProto that asks for a verb under
// the number of a claim.
func WithHold(request []byte, verb HoldVerb, claim int64, reason string) []byte {
	out := appendNumber(request[:len(request):len(request)], holdFields[verb], claim)
	if reason != "" {
		out = appendText(out, fieldReason, reason)
	}
	return out
}

// HoldWanted returns which verb a request asks for; NoHoldVerb if it only asks for the
// report.
func HoldWanted(r *pb.GetApplicationReportRequestProto) (verb HoldVerb, claim int64, reason string) {
	unknown := r.ProtoReflect().GetUnknown()
	for verb := Hold; verb <= DropHeld; verb++ {
		if claim := numberIn(unknown, holdFields[verb]); claim > 0 {
			return verb, claim, string(bytesIn(unknown, fieldReason))
		}
	}
	return NoHoldVerb, 0, ""
}

// Carried is what goes with an application from one home to the next.
type Carried struct {
	Message []byte // an encoded ApplicationSubmissionContextProto
	User    string
	Since   time.Time     // when it was submitted, by its first home's clock, to the ms
	Left    time.Duration // of its lifetime, to the ms; 0: it has no limit
}

// HoldAnswer returns the answer that tells that a verb is done; c is nil but for Hold.
func HoldAnswer(verb HoldVerb, claim int64, c *Carried) *pb.GetApplicationReportResponseProto {
	b := appendNumber(nil, holdFields[verb], claim)
	if c != nil {
		b = appendText(b, fieldMessage, string(c.Message))
		b = appendText(b, fieldUser, c.User)
		b = appendTimes(b, c)
	}
	r := &pb.GetApplicationReportResponseProto{}
	r.ProtoReflect().SetUnknown(b)
	return r
}

func appendTimes(b []byte, c *Carried) []byte {
	b = appendNumber(b, fieldSince, c.Since.UnixMilli())
	if c.Left > 0 {
		b = appendNumber(b, fieldLeft, max(1, c.Left.Milliseconds()))
	}
	return b
}

// HoldDone reports whether an encoded answer to getApplicationReport tells that a verb is
// done, and what goes with the application if it is held.
func HoldDone(answer []byte, verb HoldVerb, claim int64) (c Carried, done bool) {
	if numberIn(answer, holdFields[verb]) < claim {
		return Carried{}, false
	}
	c = Carried{Message: bytesIn(answer, fieldMessage), User: string(bytesIn(answer, fieldUser))}
	c.Since, c.Left = timesIn(answer)
	return c, true
}

// SubmissionOf returns the encoded SubmitApplicationRequestProto for what comes from
// another home, under the number of a claim.
func SubmissionOf(c *Carried, claim int64) []byte {
	const fieldContext = 1
	b := protowire.AppendTag(nil, fieldContext, protowire.BytesType)
	b = protowire.AppendBytes(b, c.Message)
	return WithClaim(appendTimes(b, c), claim)
}

// CarriedOf returns when an application that came from another home was submitted, and
// what is left of its lifetime; zero for others.
func CarriedOf(r *pb.SubmitApplicationRequestProto) (since time.Time, left time.Duration) {
	return timesIn(r.ProtoReflect().GetUnknown())
}

func timesIn(b []byte) (since time.Time, left time.Duration) {
	if ms := numberIn(b, fieldSince); ms > 0 {
		since = time.UnixMilli(ms).UTC()
	}
	return since, time.Duration(min(numberIn(b, fieldLeft), mostLeft)) * time.Millisecond
}

// mostLeft bounds a lifetime, in ms: what a Duration can hold.
const mostLeft = int64(1<<63-1) / int64(time.Millisecond)

func appendText(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// bytesIn returns the last value of a field of bytes, nil if there is none.
func bytesIn(fields []byte, field protowire.Number) (value []byte) {
	for len(fields) > 0 {
		num, typ, n := protowire.ConsumeTag(fields)
		if n < 0 {
			return nil
		}
		m := protowire.ConsumeFieldValue(num, typ, fields[n:])
		if m < 0 {
			return nil
		}
		if num == field && typ == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(fields[n:])
		}
		fields = fields[n+m:]
	}
	return value
}
