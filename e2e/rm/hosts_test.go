// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/propertytest"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

var hosts = []string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"}

// A hostFile is the text of a file that excludes hosts, and of one that includes them. An empty name is an empty
// file.
type hostFile struct {
	what, exclude, text string
	include, members    string
	graceful            bool
	differs             string // the reason of a known difference
}

const xmlHead = `<?xml version="1.0"?>`

var hostFiles = []hostFile{
	{what: "words", exclude: "out", text: "127.0.0.2  127.0.0.4 # 127.0.0.3\n\n\t127.0.0.5"},
	{what: "a name with a port", exclude: "out", text: "127.0.0.2:1"},
	{what: "commas in words", exclude: "out", text: "127.0.0.2,127.0.0.3"},
	{what: "one name", exclude: "out.xml", text: xmlHead + "<hosts><host><name>127.0.0.2</name></host></hosts>"},
	{what: "a list of names", exclude: "out.xml", text: xmlHead +
		"<hosts><host><name> 127.0.0.2, 127.0.0.3\n127.0.0.4,,</name><timeout>9</timeout></host></hosts>"},
	{what: "blanks in a list", exclude: "out.xml", text: "<hosts><host><name>127.0.0.2 127.0.0.3</name></host></hosts>"},
	{what: "a range", exclude: "out.xml", text: "<hosts><host><name>127.0.0.[2-4]</name></host></hosts>"},
	{what: "a range of words", exclude: "out", text: "127.0.0.[2-4]"},
	{what: "a star", exclude: "out.xml", text: "<hosts><host><name>*</name></host></hosts>"},
	{what: "two names of a host", exclude: "out.xml", text: "<a><host><name>127.0.0.2</name><name>127.0.0.3</name></host></a>"},
	{what: "names outside a host", exclude: "out.xml", text: "<a><name>127.0.0.2</name></a>"},
	{what: "a host without a name", exclude: "out.xml", text: "<a><host><timeout>5</timeout></host></a>"},
	{what: "deeper", exclude: "out.xml", text: "<a><b><host><x><name>127.0.0.3</name></x></host></b></a>"},
	{what: "comments", exclude: "out.xml", text: "<a><!-- b --><host><name>127.0.0.2<!-- c --></name></host></a>"},
	{what: "capitals", exclude: "out.XML", text: "<a><host><name>127.0.0.2</name></host></a>"},
	{what: "other capitals", exclude: "out.xml", text: "<a><Host><Name>127.0.0.2</Name></Host></a>"},
	{what: "no host", exclude: "out.xml", text: "<hosts/>"},
	{what: "a timeout below 0", exclude: "out.xml", text: "<a><host><name>127.0.0.2</name><timeout>-1</timeout></host></a>",
		graceful: true},
	{what: "a timeout of 0", exclude: "out.xml", text: "<a><host><name>127.0.0.2</name><timeout>0</timeout></host></a>",
		graceful: true},
	{what: "blanks around a timeout", exclude: "out.xml",
		text:    "<a><host><name>127.0.0.2</name><timeout> 5 </timeout></host></a>",
		differs: "Hadoop rejects them around a timeout, but not around a name"},
	{what: "a graceful word", exclude: "out", text: "127.0.0.5", graceful: true},
	{what: "a timeout with a unit", exclude: "out.xml", text: "<a><host><name>127.0.0.2</name><timeout>1h</timeout></host></a>"},
	{what: "an empty timeout", exclude: "out.xml", text: "<a><host><name>127.0.0.2</name><timeout/></host></a>"},
	{what: "empty", exclude: "out.xml", text: ""},
	{what: "cut off", exclude: "out.xml", text: "<a><host><name>127.0.0.2</name>"},
	{what: "words named as XML", exclude: "out.xml", text: "127.0.0.2"},
	{what: "XML named as words", exclude: "out", text: "<a><host><name>127.0.0.2</name></host></a>",
		differs: "Hadoop reads the elements as names of hosts, and excludes none"},
	{what: "included", include: "in", members: "127.0.0.2 127.0.0.3"},
	{what: "included in XML", include: "in.xml", members: "<a><host><name>127.0.0.2,127.0.0.3</name></host></a>",
		differs: "Hadoop reads members as words whatever the file's name, and here includes none"},
	{what: "included and excluded", include: "in", members: "127.0.0.2 127.0.0.3", exclude: "out.xml",
		text: "<a><host><name>127.0.0.3</name></host></a>"},
	{what: "an empty list of members", include: "in", members: "\n"},
	{what: "an absent file", exclude: "absent/out", text: "",
		differs: "Hadoop reads it as an empty file, and a mistyped path excludes none"},
}

// drawHostFile draws an XML file of hosts, with or without members.
func drawHostFile(r *rand.Rand, what string) hostFile {
	list := func() string {
		var b strings.Builder
		b.WriteString("<hosts>")
		for range 1 + r.IntN(3) {
			var names []string
			for range 1 + r.IntN(2) {
				names = append(names, hosts[r.IntN(len(hosts))])
			}
			blanks := []string{"", " ", "\n"}[r.IntN(3)]
			b.WriteString("<host><name>" + blanks + strings.Join(names, []string{",", ", ", "\n"}[r.IntN(3)]) + blanks + "</name>")
			if r.IntN(2) == 0 {
				fmt.Fprintf(&b, "<timeout>%d</timeout>", r.IntN(100)-1)
			}
			b.WriteString("</host>" + blanks)
		}
		return b.String() + "</hosts>"
	}
	f := hostFile{what: what, exclude: "out.xml", text: list(), graceful: r.IntN(2) == 0}
	if r.IntN(3) == 0 {
		f.include, f.members = "in", strings.Join(hosts[r.IntN(2):2+r.IntN(3)], []string{" ", "\n", "\t"}[r.IntN(3)])
	}
	return f
}

// admitted is one ResourceManager with its nodes.
type admitted struct {
	*stage
	conf hadoop.Conf
	dir  string
}

// states returns the hosts' states; each that serves reports first.
func (a *admitted) states() map[string]string {
	a.t.Helper()
	for _, host := range hosts {
		key := &pb.MasterKeyProto{KeyId: new(int32(0))}
		r, err := a.tracker().NodeHeartbeat(a.t.Context(), &pb.NodeHeartbeatRequestProto{
			NodeStatus: a.status(host), LastKnownContainerTokenMasterKey: key, LastKnownNmTokenMasterKey: key,
		})
		if err == nil && r.GetNodeAction() == pb.NodeActionProto_NORMAL {
			a.nodes[host] = r.GetResponseId()
		}
	}
	out := map[string]string{}
	for _, n := range ok(a.user().GetClusterNodes(a.t.Context(), &pb.GetClusterNodesRequestProto{
		NodeStates: []pb.NodeStateProto{
			pb.NodeStateProto_NS_NEW, pb.NodeStateProto_NS_RUNNING, pb.NodeStateProto_NS_UNHEALTHY, pb.NodeStateProto_NS_DECOMMISSIONED,
			pb.NodeStateProto_NS_LOST, pb.NodeStateProto_NS_REBOOTED, pb.NodeStateProto_NS_DECOMMISSIONING, pb.NodeStateProto_NS_SHUTDOWN,
		},
	}))(a.stage).GetNodeReports() {
		out[n.GetNodeId().GetHost()] = n.GetNodeState().String()
	}
	return out
}

// refresh writes the files and has them read. It reports whether they were accepted.
func (a *admitted) refresh(f hostFile) bool {
	a.t.Helper()
	paths := hadoop.Conf{}
	for key, file := range map[string][2]string{"exclude": {f.exclude, f.text}, "include": {f.include, f.members}} {
		if file[0] == "" {
			file[0] = "none" // an empty file: Hadoop keeps the last list when the path is removed
		}
		path := filepath.Join(a.dir, file[0])
		paths["yarn.resourcemanager.nodes."+key+"-path"] = path
		if filepath.Dir(path) == a.dir {
			if err := os.WriteFile(path, []byte(file[1]), 0o600); err != nil {
				a.t.Fatal(err)
			}
		}
	}
	a.conf.With(paths).Write(a.t, a.dir)
	kind := pb.DecommissionTypeProto_DECOMMISSION_NORMAL
	if f.graceful {
		kind = pb.DecommissionTypeProto_GRACEFUL
	}
	admin := yarnrpc.NewResourceManagerAdministrationProtocolClient(a.client, a.Admin, hrpc.Login{User: hadoop.OSUser(a.t)})
	_, err := admin.RefreshNodes(a.t.Context(), &pb.RefreshNodesRequestProto{DecommissionType: &kind})
	if err != nil && testing.Verbose() {
		a.t.Logf("%s: %.300s", f.what, err)
	}
	return err == nil
}

// all registers every node that does not serve.
func (a *admitted) all(after string) {
	a.t.Helper()
	a.process.Await(a.t, "all nodes serve after "+after, func() bool {
		serving := true
		for host, state := range a.states() {
			if state != "NS_RUNNING" {
				serving = false
				a.register(host) // rejected, it fails the test
			}
		}
		return serving
	})
}

// Files that exclude and include hosts leave the same nodes with creel's ResourceManager as with Hadoop's, and both
// reject the same files.
func TestHostFilesMatchHadoop(t *testing.T) {
	theirs, ours := hadoop.StartRM(t, hadoop.RM{}), Start(t, Options{Volatile: true})
	sides := []*admitted{
		{newStage(t, theirs.Process, theirs.Addresses), theirs.Daemon.Conf, theirs.ConfDir},
		{newStage(t, ours.Process, ours.Addresses), ours.Conf, ours.ConfDir},
	}
	for _, a := range sides {
		for _, host := range hosts {
			a.register(host)
		}
		a.all("the start")
	}
	r := propertytest.Rand(t)
	drawn := 12
	if propertytest.Searching() {
		drawn = 120
	}
	all := slices.Clone(hostFiles)
	for i := range drawn {
		all = append(all, drawHostFile(r, fmt.Sprintf("drawn %d", i)))
	}
	for _, f := range all {
		read := []bool{sides[0].refresh(f), sides[1].refresh(f)}
		switch {
		case read[0] != read[1] && f.differs != "":
		case read[0] != read[1]:
			t.Errorf("%s: Hadoop reads it: %v, creel: %v\n%s", f.what, read[0], read[1], f.text)
		case read[0]:
			var want, got map[string]string
			same := func() bool {
				want, got = sides[0].states(), sides[1].states()
				return maps.Equal(want, got)
			}
			// Hadoop changes nodes in threads of its own: states count once they are equal three times.
			for n, until := 0, time.Now().Add(process.Guard); n < 3 && time.Now().Before(until); n++ {
				if same() != (f.differs == "") {
					n = -1
				}
			}
			if same() != (f.differs == "") {
				t.Errorf("%s: %v, with Hadoop %v\n%s\n%s", f.what, got, want, f.text, f.members)
			}
		}
		for _, a := range sides {
			if !a.refresh(hostFile{what: "none"}) {
				t.Fatalf("after %s, empty files are rejected at %s", f.what, a.Web)
			}
			a.all(f.what)
		}
	}
}
