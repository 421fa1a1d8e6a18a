// SPDX-License-Identifier: Apache-2.0

package hugepages

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The heap is found among a process's mappings, in whole huge pages.
func TestHeapIsFoundAmongMappings(t *testing.T) {
	maps := `00400000-004ab000 r-xp 00000000 fe:00 10403886                           /bin/creel
00599000-005cf000 rw-p 00000000 00:00 0 
24d0a4000000-24d0a5800000 ---p 00000000 00:00 0 
24d0a5900000-24d0b8900000 rw-p 00000000 00:00 0 
24d0b9000000-24d0b9001000 rw-p 00000000 00:00 0 
24d0ba000000-24d0ba400000 rw-p 00000000 fe:00 77                                 /data/file
7f5054d00000-7f5056e00000 rw-p 00000000 00:00 0 
`
	got, err := heap(strings.NewReader(maps), 0x24d0a6000000)
	if want := []span{{0x24d0a5a00000, 0x24d0b8800000}}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("%x, %v, want %x", got, err, want)
	}
}

// The used heap is in huge pages after a request, if the kernel provides them; otherwise an error is returned.
func TestHeapLiesInHugePages(t *testing.T) {
	used := make([]byte, 64<<20) // mapped, and without pages until it is touched
	stop, err := Keep()
	if b, _ := os.ReadFile(
		"/sys/kernel/mm/transparent_hugepage/enabled",
	); !strings.Contains(string(b), "[madvise]") &&
		!strings.Contains(string(b), "[always]") {
		if err == nil {
			t.Fatal("no error, and no huge pages")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for i := 0; i < len(used); i += 4096 {
		used[i] = 1
	}
	if err := Collapse(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`AnonHugePages: +(\d+) kB`).FindSubmatch(b)
	if found == nil {
		t.Fatalf("%s", b)
	}
	if kb, _ := strconv.Atoi(string(found[1])); kb < 32<<10 {
		t.Errorf("%d kB in huge pages, want most of 64 MiB", kb)
	}
	runtime.KeepAlive(used)
}
