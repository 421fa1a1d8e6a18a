// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/resolver"
	"pgregory.net/rapid"
)

func TestPublishedHostsAndRacksAreFound(t *testing.T) {
	table := resolver.NewTable(map[creel.SubclusterID]resolver.Nodes{
		"sc-2": {"Node7.example.com": "/dc2/r1", "n8": "/default-rack"},
		"sc-1": {"n1": "/dc1/r1", "n2": "/default-rack", "shared": "/default-rack"},
		"sc-3": {"shared": "/default-rack"},
	}, []resolver.Override{{Host: "N1", Member: "sc-9", Rack: "/dc9"}})
	for name, want := range map[string][]creel.SubclusterID{
		"node7.EXAMPLE.com": {"sc-2"},
		"/dc2/r1":           {"sc-2"},
		"n1":                {"sc-9"}, // the list overrules sc-1
		"/dc9":              {"sc-9"},
		"/dc1/r1":           nil, // its only host is elsewhere by the list
		"/default-rack":     {"sc-1", "sc-2", "sc-3"},
		"shared":            {"sc-1", "sc-3"},
		"unknown":           nil,
		"":                  nil,
	} {
		if got := table.Where(name); !slices.Equal(got, want) {
			t.Errorf("%q is at %v, want %v", name, got, want)
		}
	}
	if got := (*resolver.Table)(nil).Where("n1"); got != nil {
		t.Errorf("no table knows n1 at %v", got)
	}
}

func TestPublishedMapIsReadBack(t *testing.T) {
	name := rapid.StringMatching(`[a-zA-Z0-9/_.:-]{1,40}`)
	propertytest.Check(t, func(t *rapid.T) {
		n := resolver.Nodes(rapid.MapOf(name, name).Draw(t, "nodes"))
		encoded := n.Encode()
		if !bytes.Equal(encoded, maps.Clone(n).Encode()) {
			t.Fatal("equal nodes have other bytes")
		}
		got, err := resolver.Decode(encoded)
		if err != nil || !maps.Equal(got, n) {
			t.Fatalf("%v was read back as %v, %v", n, got, err)
		}
	})
}

// A name that could not be read back would make the whole document unreadable.
func TestInvalidNamesAreLeftOut(t *testing.T) {
	n := resolver.Nodes{"a b": "/r", "ok": "/r", "x": "", "": "/r", "y": "/r\n", strings.Repeat("z", 254): "/r"}
	got, err := resolver.Decode(n.Encode())
	if err != nil || !maps.Equal(got, resolver.Nodes{"ok": "/r"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestABombIsRefused(t *testing.T) {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	zeros := []byte(strings.Repeat("a", 1<<20))
	for range 64 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := resolver.Decode(b.Bytes()); !errors.Is(err, creel.ErrInvalidRequest) {
		t.Errorf("64 MiB in %d bytes were read: %v", b.Len(), err)
	}
}

func TestHadoopMachineListIsRead(t *testing.T) {
	got, err := resolver.ParseMachineList("# nodes\n\nnode1, sc-3, /rack9\nnode1, sc-1 , /rack1\nNODE2,sc-2,\n")
	want := []resolver.Override{{Host: "node1", Member: "sc-1", Rack: "/rack1"}, {Host: "NODE2", Member: "sc-2"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for text, part := range map[string]string{
		"a,sc-1,/r\nb,sc-1": "line 2",
		"a b,sc-1,/r":       "host",
		"a,,/r":             "line 1",
		"a,sc-1,/r 1":       "rack",
	} {
		if _, err := resolver.ParseMachineList(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v does not say %q", text, err, part)
		}
	}
}

func FuzzDecode(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add(resolver.Nodes{"n1": "/r1", "n2": "/r2", "n3": "/r1"}.Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := resolver.Decode(data)
		if err != nil {
			return
		}
		again, err := resolver.Decode(n.Encode())
		if err != nil || !maps.Equal(n, again) {
			t.Fatalf("%v became %v, %v", n, again, err)
		}
	})
}

func BenchmarkTable(b *testing.B) {
	members := map[creel.SubclusterID]resolver.Nodes{}
	for m := range 20 {
		n := resolver.Nodes{}
		for h := range 1000 {
			n[fmt.Sprintf("node-%d-%d.example.com", m, h)] = fmt.Sprintf("/dc%d/rack%d", m, h/40)
		}
		members[creel.SubclusterID(fmt.Sprintf("sc-%d", m))] = n
	}
	table := resolver.NewTable(members, nil)
	b.Run("make 20,000 hosts", func(b *testing.B) {
		for b.Loop() {
			resolver.NewTable(members, nil)
		}
	})
	b.Run("where", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if table.Where("node-7-333.example.com") == nil {
				b.Fatal("not found")
			}
		}
	})
	b.Run("bytes published of 1,000 hosts", func(b *testing.B) {
		n := members["sc-7"]
		for b.Loop() {
			b.ReportMetric(float64(len(n.Encode())), "bytes")
		}
	})
}
