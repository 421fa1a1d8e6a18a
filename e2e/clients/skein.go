// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

//go:embed skein_user.py
var skeinUser []byte

var skein = []Case{
	// Services, like those of Dask and tf-yarn: their number changes while the application runs.
	{"skein", func(t *testing.T, c *Cluster) {
		client := c.client(t, hadoop.Conf{"fs.defaultFS": "viewfs://nodes/"})
		python := python3(t)
		// It uses an installed Hadoop only for this program's output.
		bin := filepath.Join(client.Dir(), "bin")
		script := "#!/bin/sh\necho '" + hadoop.ClassPath(t, hadoop.V342, client.ConfDir()) + "'\n"
		if err := os.Mkdir(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, "yarn"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		user := filepath.Join(client.Dir(), "user.py")
		if err := os.WriteFile(user, skeinUser, 0o644); err != nil {
			t.Fatal(err)
		}
		packages := hadoop.SkeinPath(t)
		ctx, cancel := context.WithTimeout(context.Background(), 2*process.Guard)
		defer cancel()
		_, all, code := process.Run(ctx, t, process.Command{
			Name: "skein", Dir: client.Dir(),
			Args: append([]string{python, user, c.Web, python, packages}, c.Login.skein(c.cookie(t))...),
			Env: slices.Concat(client.Environment(t), c.Login.noTickets(client.Dir()), []string{
				"PATH=" + bin + ":" + os.Getenv("PATH"), "PYTHONPATH=" + packages,
				"SKEIN_DRIVER_JAVA_OPTIONS=" + hadoop.Quick + " -Duser.home=" + client.Dir(),
			}),
		})
		if code != 0 {
			log, err := os.ReadFile(filepath.Join(client.Dir(), "driver.log"))
			t.Fatalf("exit code %d\n%s\nits log: %v\n%s", code, all, err, log)
		}
		says(t, all, "all is well")
	}},
}
