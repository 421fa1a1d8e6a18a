// SPDX-License-Identifier: Apache-2.0

package role

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
)

// The bounds of containers and of queues are in the unit of their type, as in Hadoop; asks and nodes name theirs.
func TestBoundsAreInTheTypesUnit(t *testing.T) {
	dir := t.TempDir()
	const queues = "<configuration>" +
		"<property><name>yarn.scheduler.capacity.root.queues</name><value>a,b</value></property>" +
		"<property><name>yarn.scheduler.capacity.root.a.capacity</name>" +
		"<value>[memory=2048,vcores=2,bandwidth=300]</value></property>" +
		"<property><name>yarn.scheduler.capacity.root.b.capacity</name>" +
		"<value>[memory=2Gi,vcores=2,bandwidth=1G]</value></property></configuration>"
	if err := os.WriteFile(filepath.Join(dir, "capacity-scheduler.xml"), []byte(queues), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(defines ...string) *settings.Settings {
		s, err := settings.Load(settings.Sources{ConfDir: dir, Defines: append([]string{
			"yarn.resource-types=bandwidth", "yarn.resource-types.bandwidth.units=M",
		}, defines...)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	m, err := machineConfig(load(
		"yarn.resource-types.bandwidth.minimum-allocation=2", "yarn.resource-types.bandwidth.maximum-allocation= 4000 "))
	if err != nil {
		t.Fatal(err)
	}
	least, most := m.MinAllocation.Get("bandwidth"), m.MaxAllocation.Get("bandwidth")
	if least != 2_000_000 || most != 4_000_000_000 {
		t.Errorf("allocations from %d to %d", least, most)
	}
	for i, want := range []creel.Resource{
		creel.NewResource(2048, 2).With("bandwidth", 300_000_000),
		creel.NewResource(2048, 2).With("bandwidth", 1_000_000_000),
	} {
		if got := m.Queues.Root.Children[i].Capacity.Resource; !got.Equal(want) {
			t.Errorf("queue %d has %v, want %v", i, got, want)
		}
	}
	for define, want := range map[string]string{
		"yarn.resource-types.bandwidth.units=X": "unknown unit",
		"yarn.resource-types.bandwidth.units=m": `unit "m" is not supported`,
	} {
		if _, err := machineConfig(load(define)); !settings.IsProblem(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", define, err, want)
		}
	}
}
