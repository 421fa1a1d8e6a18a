// SPDX-License-Identifier: Apache-2.0

package yarnpb

// SetHeld marks the application of a report as held for a move to another subcluster, under the claim with this
// number; 0 marks nothing.
func SetHeld(r *ApplicationReportProto, claim int64) {
	if claim > 0 {
		m := r.ProtoReflect()
		m.SetUnknown(AppendNumber(m.GetUnknown(), FieldHeld, claim))
	}
}

// HeldUnder returns the claim set by SetHeld; 0 if there is none.
func HeldUnder(r *ApplicationReportProto) (claim int64) {
	return NumberIn(r.ProtoReflect().GetUnknown(), FieldHeld)
}

// SetNewest adds the highest claim that a ResourceManager knows of the application of a report; 0 adds nothing.
func SetNewest(r *ApplicationReportProto, claim int64) {
	if claim > 0 {
		m := r.ProtoReflect()
		m.SetUnknown(AppendNumber(m.GetUnknown(), FieldNewest, claim))
	}
}

// NewestClaim returns the claim set by SetNewest; 0 if there is none.
func NewestClaim(r *ApplicationReportProto) (claim int64) {
	return NumberIn(r.ProtoReflect().GetUnknown(), FieldNewest)
}
