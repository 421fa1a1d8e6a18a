// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// opportunisticMaps are jobs with a part of their maps in opportunistic containers. MapReduce makes the first maps of
// each hundred opportunistic, by their number: all of four with 50 percent, and two with 2 percent. If it gets a
// guaranteed container first, it runs one of these two in it and asks for one opportunistic container less.
var opportunisticMaps = []struct {
	percent     string
	least, most int // opportunistic containers of four maps
}{{"0", 0, 0}, {"2", 0, 2}, {"50", 4, 4}, {"100", 4, 4}}

// OpportunisticMaps runs MapReduce jobs of four maps and a reduce, with parts of their maps in opportunistic
// containers. A container that its node killed for a guaranteed one is repeated as a guaranteed one. It returns the
// ids of the opportunistic containers.
func OpportunisticMaps(t *testing.T, c *Cluster) (ids []string) {
	t.Helper()
	for _, k := range opportunisticMaps {
		dir := t.TempDir()
		all := runJob(t, c, c.client(t), hadoop.SleepJob, "-Dmapreduce.job.num-opportunistic-maps-percent="+k.percent,
			probe(t, dir, "map"), probe(t, dir, "reduce"), "-m", "4", "-r", "1", "-mt", "500", "-rt", "100")
		says(t, all, "Launched reduce tasks=1", "Failed Shuffles=0")
		maps, opportunistic := probed(t, dir, "map")
		if n := len(opportunistic); maps < 4 || n < k.least || n > k.most {
			t.Errorf("%s percent: %d of %d maps are opportunistic, want %d to %d of 4:\n%s",
				k.percent, n, maps, k.least, k.most, all)
		}
		if reduces, opportunistic := probed(t, dir, "reduce"); reduces != 1 || len(opportunistic) > 0 {
			t.Errorf("%s percent: %d of %d reduces are opportunistic", k.percent, len(opportunistic), reduces)
		}
		ids = append(ids, opportunistic...)
	}
	return ids
}

// probe returns a setting by which each container of a kind of task stores its node's report of it in dir. The report
// is read when the container's launch script sets the task's environment.
func probe(t *testing.T, dir, kind string) string {
	t.Helper()
	script := filepath.Join(dir, kind)
	text := fmt.Sprintf("exec 3<>/dev/tcp/$1/$2\n"+
		"printf 'GET /ws/v1/node/containers/%%s HTTP/1.0\\r\\n\\r\\n' $3 >&3\ncat <&3 >%s/%s.$3\n", dir, kind)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "-Dmapreduce." + kind + ".env=PROBE=$(bash " + script + " ${NM_HOST} ${NM_HTTP_PORT} ${CONTAINER_ID})"
}

// probed returns the number of containers of a kind that ran, and the ids of the opportunistic ones.
func probed(t *testing.T, dir, kind string) (all int, opportunistic []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, kind+".container_*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch text := string(b); {
		case strings.Contains(text, `"executionType":"OPPORTUNISTIC"`):
			opportunistic = append(opportunistic, strings.TrimPrefix(filepath.Base(file), kind+"."))
		case !strings.Contains(text, `"executionType":"GUARANTEED"`):
			t.Errorf("%s: %s", filepath.Base(file), text)
		}
	}
	return len(files), opportunistic
}
