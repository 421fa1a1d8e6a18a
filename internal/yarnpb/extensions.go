// SPDX-License-Identifier: Apache-2.0

package yarnpb

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Fields that Hadoop does not define, in which parts of creel exchange data that YARN's messages have no field for.
// Hadoop retains unknown fields and ignores them, so each is designed so that a receiver without knowledge of it
// behaves correctly. A number is never reused; Extensions lists the message of each.
const (
	FieldBlock       protowire.Number = 15001
	FieldClaim       protowire.Number = 15002
	FieldDisown      protowire.Number = 15003
	FieldAfter       protowire.Number = 15004
	FieldHold        protowire.Number = 15005
	FieldHeld        protowire.Number = 15005 // in another message than FieldHold
	FieldReason      protowire.Number = 15006
	FieldRelease     protowire.Number = 15007
	FieldDrop        protowire.Number = 15008
	FieldSubmission  protowire.Number = 15009
	FieldUser        protowire.Number = 15010
	FieldSince       protowire.Number = 15011
	FieldLifetime    protowire.Number = 15012
	FieldTag         protowire.Number = 15013
	FieldParts       protowire.Number = 15014
	FieldEnds        protowire.Number = 15015
	FieldPlacement   protowire.Number = 15016
	FieldNewest      protowire.Number = 15017
	FieldTraceparent protowire.Number = 15020
	FieldUnplaced    protowire.Number = 15021
)

// Extension is a creel field in one of YARN's messages.
type Extension struct {
	Number  protowire.Number
	Message string // without its package
	Meaning string
}

// Extensions are all of them: the table of docs/reference/wire.md.
var Extensions = []Extension{
	{FieldBlock, "GetNewApplicationRequestProto", "how many application ids a router wants at once; without it one is returned"},
	{FieldBlock, "GetNewApplicationResponseProto", "how many consecutive ids are returned; the first is in Hadoop's field"},
	{FieldClaim, "SubmitApplicationRequestProto", "the number of the claim under which a router forwards the submission"},
	{FieldDisown, "GetApplicationReportRequestProto",
		"refuse the application for ever under claims up to this number, unless it is there"},
	{FieldDisown, "GetApplicationReportResponseProto",
		"it is disowned, durably; the answer then has no report; the highest int64 means that it ran there and ended"},
	{FieldAfter, "ApplicationSubmissionContextProto",
		"restart an unmanaged AM whose attempt of this number has ended"},
	{FieldHold, "GetApplicationReportRequestProto", "hold a waiting application for a move, under the claim of this number"},
	{FieldReason, "GetApplicationReportRequestProto", "why it is held"},
	{FieldRelease, "GetApplicationReportRequestProto", "release it: it does not move"},
	{FieldDrop, "GetApplicationReportRequestProto", "drop it: its next home has it"},
	{FieldHold, "GetApplicationReportResponseProto", "it is held, and that is durable; the answer then has no report"},
	{FieldRelease, "GetApplicationReportResponseProto", "it is released, and that is durable"},
	{FieldDrop, "GetApplicationReportResponseProto", "it is dropped, and that is durable"},
	{FieldSubmission, "GetApplicationReportResponseProto", "of a held application: the submission, with the current queue and priority"},
	{FieldUser, "GetApplicationReportResponseProto", "of a held application: its user"},
	{FieldSince, "GetApplicationReportResponseProto", "of a held application: when it was submitted, ms since 1970"},
	{FieldLifetime, "GetApplicationReportResponseProto", "of a held application: the rest of its lifetime, in ms"},
	{FieldSince, "SubmitApplicationRequestProto", "of an application from another home: when it was submitted there"},
	{FieldLifetime, "SubmitApplicationRequestProto", "of an application from another home: the rest of its lifetime, in ms"},
	{FieldHeld, "ApplicationReportProto", "the claim under which the application is held for a move"},
	{FieldNewest, "ApplicationReportProto",
		"the highest claim known here of the application; a rebuilt state store continues above it"},
	{FieldTag, "GetApplicationsRequestProto", "the tag of the list that a router has, empty if it has none"},
	{FieldParts, "GetApplicationsRequestProto", "1: include proxies' unmanaged AMs that run, or whose logs are not aggregated, whatever the filter, for the router to join"},
	{FieldTag, "GetApplicationsResponseProto", "the list's tag; sent alone if the router has that list"},
	{FieldEnds, "RegisterApplicationMasterResponseProto",
		"1: the application's containers end with their attempt, so that the proxy ends those of its UAMs"},
	{FieldPlacement, "GetQueueInfoRequestProto",
		"an ApplicationSubmissionContextProto: return the queue in which placement rules would run it; the answer has no queue"},
	{FieldPlacement, "GetQueueInfoResponseProto", "the path of that queue"},
	{FieldTraceparent, "ApplicationSubmissionContextProto",
		"the span in which the application was accepted, in W3C's format; stored in the journal"},
	{FieldTraceparent, "RegisterApplicationMasterResponseProto", "the same, for the proxy"},
	{FieldUnplaced, "DistributedSchedulingAllocateRequestProto",
		"how many containers the AM asks for that its proxy places and has found no node for"},
}

// AppendNumber appends a creel field with a number.
func AppendNumber(b []byte, field protowire.Number, n int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
}

// AppendText appends a creel field with a text, or bytes.
func AppendText[T string | []byte](b []byte, field protowire.Number, text T) []byte {
	b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(len(text)))
	return append(b, text...)
}

// NumberIn returns the positive number of a creel field among encoded fields, 0 if there is none. Of several the last
// counts, as usual in protobuf: creel's value is behind one that a client may have set.
func NumberIn(fields []byte, field protowire.Number) (number int64) {
	for len(fields) > 0 {
		num, kind, value, n := Cut(fields)
		if n < 0 {
			return 0
		}
		if num == field && kind == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(value)
			number = max(int64(v), 0)
		}
		fields = fields[n:]
	}
	return number
}

// BytesIn returns the last value of a field of bytes, which points into fields; nil if
// there is none.
func BytesIn(fields []byte, field protowire.Number) (text []byte) {
	for len(fields) > 0 {
		num, kind, value, n := Cut(fields)
		if n < 0 {
			return nil
		}
		if num == field && kind == protowire.BytesType {
			text, _ = protowire.ConsumeBytes(value)
		}
		fields = fields[n:]
	}
	return text
}

// Without returns a copy of encoded fields but for one. They were parsed before.
func Without(fields []byte, field protowire.Number) (rest []byte) {
	for len(fields) > 0 {
		num, _, n := protowire.ConsumeField(fields)
		if n < 0 {
			return rest
		}
		if num != field {
			rest = append(rest, fields[:n]...)
		}
		fields = fields[n:]
	}
	return rest
}

// Encoded returns a message that is written as these bytes, which must be the encoding of
// fields of its type.
func Encoded[M proto.Message](m M, fields []byte) M {
	m.ProtoReflect().SetUnknown(fields)
	return m
}

// Cut takes the first field off encoded ones; n is its size, negative (an error of
// protowire.ParseError) if it is cut short.
func Cut(b []byte) (number protowire.Number, kind protowire.Type, value []byte, n int) {
	number, kind, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return 0, 0, nil, tag
	}
	size := protowire.ConsumeFieldValue(number, kind, b[tag:])
	if size < 0 {
		return 0, 0, nil, size
	}
	return number, kind, b[tag : tag+size], tag + size
}
