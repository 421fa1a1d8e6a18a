// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

var update = flag.Bool("update", false, "rewrite the examples and figures of docs/guide/policies.md")

// figure is a policy in the guide: a document, its input, and its result.
type figure struct {
	kind, policy string // "home" or "split"
	document     string
	bars         []bar
	note         string
}

// bar is one subcluster: its size or load, and its part of the result.
type bar struct {
	member       creel.SubclusterID
	has, whole   int64
	got          int64
	hasOf, gotOf string // the meaning of the numbers
}

// figuresOfHomes decides 600 submissions of six queues, one after the other between two
// heartbeats, over three subclusters of which one is twice as large.
func figuresOfHomes(t *testing.T) (out []figure) {
	sizes := []struct {
		member      creel.SubclusterID
		free, whole int64 // GB
	}{{"sc-1", 20, 100}, {"sc-2", 60, 100}, {"sc-3", 150, 200}}
	var members []subcluster.Status
	for _, s := range sizes {
		m := member(s.member, s.free*1000)
		m.Load.Metrics.TotalMB, m.Load.Metrics.TotalVirtualCores = s.whole*1000, s.whole
		members = append(members, m)
	}
	v := view(members...)
	where := func(string) []creel.SubclusterID { return []creel.SubclusterID{"sc-1"} }
	for _, example := range []struct{ policy, more, note string }{
		{"balanced", "", ""},
		{"weighted", `"weights":{"sc-1":3,"sc-2":1}`, "sc-3 has no weight and is left out."},
		{"priority", `"weights":{"sc-1":1,"sc-2":2}`, "sc-1 would get them if sc-2 were lost."},
		{"load", "", ""},
		{"hash", "", "Each of six queues has one home, whatever is free."},
		{"locality", "", "A third of the AMs named a host of sc-1."},
		{"uniform", "", ""},
		{"reject", "", "All 600 were refused."},
	} {
		f := figure{kind: "home", policy: example.policy, note: example.note, document: shown("home", example.policy, example.more)}
		p := must(t, f.document)
		sent := map[creel.SubclusterID]int64{}
		rnd := seeded(11)
		for i := range 600 {
			s := Submission{Queue: creel.QueuePath(fmt.Sprintf("root.q%d", i%6)), Size: creel.NewResource(100, 1), Where: where}
			s.Assumed = func(v *subcluster.View, each []RecentLoad) {
				for i := range each {
					apps := sent[v.Members[i].ID]
					each[i] = RecentLoad{apps, creel.NewResource(100*apps, apps)}
				}
			}
			if i%3 == 0 {
				s.Places = []string{"host-of-sc-1"}
			}
			id, _, err := p.Home(v, s, nil, rnd)
			if (err != nil) != (example.policy == "reject") {
				t.Fatalf("%s: %v", example.policy, err)
			}
			if err == nil {
				sent[id]++
			}
		}
		for _, s := range sizes {
			f.bars = append(f.bars, bar{s.member, s.free, s.whole, sent[s.member], "GB free", "homes"})
		}
		out = append(out, f)
	}
	return out
}

// figuresOfSplits splits an ask for 100 containers of an application whose home can run 40 of them, and which has a
// UAM in the second of four members.
func figuresOfSplits(t *testing.T) (out []figure) {
	rooms := []int64{40, 30, 100, 60}
	var members []subcluster.Status
	var reach []Reach
	for i, room := range rooms {
		id := creel.SubclusterID(fmt.Sprintf("sc-%d", i+1))
		m := member(id, room*1024)
		m.Load.Metrics.TotalMB, m.Load.Metrics.AvailableVirtualCores, m.Load.Metrics.TotalVirtualCores = 200*1024, room, 200
		members = append(members, m)
		reach = append(reach, Reach{Member: id, Home: i == 0, UAM: i == 1, Headroom: gigs(room), Known: true})
	}
	for _, example := range []struct{ policy, more, note string }{
		{"balanced", "", "Home gets what fits, then the one with a UAM, then as few others as hold the rest."},
		{"home", "", "60 wait for room at home."},
		{"locality", `"weights":{"sc-1":1,"sc-2":1,"sc-3":2},"headroomAlpha":0`, "By weight alone; `headroomAlpha` 1 is by headroom alone."},
		{"broadcast", "", "All are asked for all; as containers come, what others were asked for is lowered."},
		{"reject", "", "The ask was refused."},
	} {
		f := figure{kind: "split", policy: example.policy, note: example.note, document: shown("split", example.policy, example.more)}
		plan, err := must(t, f.document).Split(view(members...), "root.a", Group{Count: 100, Size: gig}, reach, seeded(11))
		if (err != nil) != (example.policy == "reject") {
			t.Fatalf("%s: %v", example.policy, err)
		}
		for i, room := range rooms {
			b := bar{member: reach[i].Member, has: room, whole: 100, hasOf: "fit", gotOf: "asked for"}
			for _, s := range plan.Shares {
				if s.Member == b.member {
					b.got = s.Count
				}
			}
			f.bars = append(f.bars, b)
		}
		out = append(out, f)
	}
	return out
}

func shown(kind, policy, more string) string {
	if more != "" {
		more = "," + more
	}
	return strings.NewReplacer(":", ": ", ",", ", ").Replace(fmt.Sprintf(`{%q:{"policy":%q%s}}`, kind, policy, more))
}

// svg draws a figure: for each subcluster one bar for its input and one for its result.
func (f figure) svg() []byte {
	const left, width, row = 60, 300, 44
	var b bytes.Buffer
	most := int64(1)
	for _, x := range f.bars {
		most = max(most, x.got)
	}
	whole := int64(1)
	for _, x := range f.bars {
		whole = max(whole, x.whole)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 %d" width="480" font-family="sans-serif" font-size="12">
<title>%s %s</title>
<style>text{fill:#222}.has{fill:#c9d6df}.got{fill:#1f6f8b}@media(prefers-color-scheme:dark){text{fill:#ddd}.has{fill:#4a5a66}.got{fill:#6cc0dd}}</style>
`, row*len(f.bars)+8, f.kind, f.policy)
	for i, x := range f.bars {
		y := row*i + 8
		fmt.Fprintf(&b, `<text x="4" y="%d">%s</text>
<rect class="has" x="%d" y="%d" width="%d" height="14"/><text x="%d" y="%d">%d %s</text>
<rect class="got" x="%d" y="%d" width="%d" height="14"/><text x="%d" y="%d">%d %s</text>
`,
			y+20, x.member,
			left, y, width*x.has/whole, left+width*x.has/whole+6, y+11, x.has, x.hasOf,
			left, y+16, width*x.got/most, left+width*x.got/most+6, y+27, x.got, x.gotOf)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// The guide shows the effect of each policy, computed by the policies themselves.
func TestGuideExamplesMatchPolicies(t *testing.T) {
	const guide = "../docs/guide/policies.md"
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	for kind, figures := range map[string][]figure{"home": figuresOfHomes(t), "split": figuresOfSplits(t)} {
		var text bytes.Buffer
		names := map[string]bool{}
		for _, f := range figures {
			names[f.policy] = true
			name := kind + "-" + f.policy + ".svg"
			same(t, filepath.Join("../docs/guide/policies", name), f.svg())
			var got []string
			for _, x := range f.bars {
				got = append(got, fmt.Sprintf("%s %d", x.member, x.got))
			}
			fmt.Fprintf(&text, "### %s: `%s`\n\n```json\n%s\n```\n\n![%s](policies/%s)\n\n",
				map[string]string{"home": "Home", "split": "Split"}[kind], f.policy, f.document, strings.Join(got, ", "), name)
			if f.note != "" {
				fmt.Fprintf(&text, "%s\n\n", f.note)
			}
		}
		for _, name := range map[string][]string{"home": HomeNames(), "split": SplitNames()}[kind] {
			if !names[name] {
				t.Errorf("%s policy %s has no figure", kind, name)
			}
		}
		begin, end := []byte("<!-- figures of "+kind+"s -->\n\n"), []byte("<!-- end of figures -->")
		head, rest, found := bytes.Cut(page, begin)
		_, tail, ends := bytes.Cut(rest, end)
		if !found || !ends {
			t.Fatalf("%s lacks the place of the figures of %ss", guide, kind)
		}
		page = bytes.Join([][]byte{head, begin, text.Bytes(), end, tail}, nil)
	}
	same(t, guide, page)
}

// same compares a file with its expected content, or rewrites it.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, want) {
		t.Errorf("%s is not of today: go test ./policies -run Guide -update (%v)", path, err)
	}
}
