// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/creelrm/creel/internal/yarnpb"
)

// Percentages of use in reports are of the home's cluster. Users of a federation are
// told those of the whole: share is the home's part of it, from 0 to 1.

// ofFederation puts a report's percentages to those of the federation.
func ofFederation(r *yarnpb.ApplicationReportProto, share float64) {
	use := r.GetAppResource_Usage()
	if use == nil {
		return
	}
	for _, percent := range []*float32{use.QueueUsagePercentage, use.ClusterUsagePercentage} {
		if percent != nil && *percent > 0 {
			*percent = float32(float64(*percent) * share)
		}
	}
}

// ofFederationQueue does so for the applications of a queue and of those below it.
func ofFederationQueue(q *yarnpb.QueueInfoProto, share float64) {
	for _, r := range q.GetApplications() {
		ofFederation(r, share)
	}
	for _, child := range q.GetChildQueues() {
		ofFederationQueue(child, share)
	}
}

// ofFederationAnswer does so in the bytes of GetApplicationReport's answer, which keep
// their length and all else they hold. What is no such answer stays.
func ofFederationAnswer(answer []byte, share float64) {
	const report, usage = 1, 14
	use := within(within(answer, report), usage)
	for len(use) > 0 {
		number, kind, n := protowire.ConsumeTag(use)
		if n < 0 {
			return
		}
		value := use[n:]
		size := protowire.ConsumeFieldValue(number, kind, value)
		if size < 0 {
			return
		}
		if kind == protowire.Fixed32Type && (number == 8 || number == 9) { // of the queue, of the cluster
			percent := math.Float32frombits(binary.LittleEndian.Uint32(value))
			if percent > 0 {
				binary.LittleEndian.PutUint32(value, math.Float32bits(float32(float64(percent)*share)))
			}
		}
		use = value[size:]
	}
}

// within returns the bytes of a message in a field of a message; nil without it.
func within(message []byte, field protowire.Number) []byte {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return nil
		}
		if number == field && kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(message)
			return inner
		}
		message = message[size:]
	}
	return nil
}
