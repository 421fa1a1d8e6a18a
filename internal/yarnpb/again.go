// SPDX-License-Identifier: Apache-2.0

package yarnpb

// BeginAfter has a submission begin the attempt of a UAM that follows the one of this
// number, which has ended. A ResourceManager that does not know the field leaves the
// UAM as it is.
func BeginAfter(c *ApplicationSubmissionContextProto, attempt int32) {
	m := c.ProtoReflect()
	m.SetUnknown(AppendNumber(m.GetUnknown(), FieldAfter, int64(max(attempt, 0))))
}

// BeginsAfter returns the number that BeginAfter gave; 0 if there is none.
func BeginsAfter(c *ApplicationSubmissionContextProto) (attempt int32) {
	return int32(min(NumberIn(c.ProtoReflect().GetUnknown(), FieldAfter), 1<<31-1))
}
