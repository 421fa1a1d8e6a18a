// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"os/exec"

	"github.com/creelrm/creel/internal/programs"
)

// Six lookups that pass by the table of programs.
func lookups() {
	_, _ = exec.LookPath("perl")
	_ = exec.Command("perl", "-v")
	_ = exec.CommandContext(context.TODO(), "redis-cli")
	_, _ = programs.Path("perl")

	helper(0, "perl")
	_ = exec.Cmd{Args: []string{"perl", "-v"}}

	_, _ = programs.Path("mvn")
	_ = exec.Command("go", "version")
	_ = exec.Command("/bin/true")
}

func helper(_ int, name string) { _, _ = programs.Path(name) }
