// SPDX-License-Identifier: Apache-2.0

package yarnpb

import "google.golang.org/protobuf/encoding/protowire"

// fieldHeld, in ApplicationReportProto, is not Hadoop's: the number of the claim under
// which an application is held for a move to another subcluster.
const fieldHeld protowire.Number = 15005

// SetHeld says in a report that the application is held; 0 says nothing.
func SetHeld(r *ApplicationReportProto, claim int64) {
	if claim > 0 {
		m := r.ProtoReflect()
		b := protowire.AppendTag(m.GetUnknown(), fieldHeld, protowire.VarintType)
		m.SetUnknown(protowire.AppendVarint(b, uint64(claim)))
	}
}

// HeldUnder returns what SetHeld gave; 0 if there is nothing.
func HeldUnder(r *ApplicationReportProto) (claim int64) {
	for fields := r.ProtoReflect().GetUnknown(); len(fields) > 0; {
		number, kind, value, n := field(fields)
		if n < 0 {
			return 0
		}
		if number == fieldHeld && kind == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(value)
			claim = max(0, int64(v))
		}
		fields = fields[n:]
	}
	return claim
}
