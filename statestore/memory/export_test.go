// SPDX-License-Identifier: Apache-2.0

package memory

// SetSchemaForTest writes a foreign schema word.
func (t *State) SetSchemaForTest(word string) { t.schema = word }
