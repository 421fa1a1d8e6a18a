// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"testing"

	"github.com/creelrm/creel/e2e/rm"
)

func TestMain(m *testing.M) { rm.Main(m) }
