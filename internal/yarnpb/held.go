// SPDX-License-Identifier: Apache-2.0

package yarnpb

// SetHeld says in a report that the application is held for a move to another
// subcluster, under the claim of this number; 0 says nothing.
func SetHeld(r *ApplicationReportProto, claim int64) {
	if claim > 0 {
		m := r.ProtoReflect()
		m.SetUnknown(AppendNumber(m.GetUnknown(), FieldHeld, claim))
	}
}

// HeldUnder returns what SetHeld gave; 0 if there is nothing.
func HeldUnder(r *ApplicationReportProto) (claim int64) {
	return NumberIn(r.ProtoReflect().GetUnknown(), FieldHeld)
}
