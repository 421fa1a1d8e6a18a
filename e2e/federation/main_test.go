// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if binary.dir != "" {
		os.RemoveAll(binary.dir)
	}
	os.Exit(code)
}
