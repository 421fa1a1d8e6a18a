// SPDX-License-Identifier: Apache-2.0

package yarnpb_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/creelrm/creel/internal/yarnpb"
)

// vt is the set of methods that vtprotobuf adds to every message.
type vt interface {
	proto.Message
	SizeVT() int
	MarshalVT() ([]byte, error)
	UnmarshalVT([]byte) error
}

// recorded is one message of a recorded conversation.
type recorded struct {
	name  string // of the message type
	bytes []byte
	text  string // as Hadoop's own classes print it
}

var (
	frameLine   = regexp.MustCompile(`^  @(\d+) frame \d+, length (\d+), callId (-?\d+)`)
	messageLine = regexp.MustCompile(`^      (\w+Proto) \((\d+) bytes\)$`)
)

// recordings reads the messages of a conversation, both directions: their positions and meanings from the text, their
// contents from the bytes.
func recordings(t testing.TB, name string) []recorded {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "wire", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []recorded
	var stream, frame []byte
	var now *recorded
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "client -> server"):
			stream = readFile(t, name+".c2s.bin")
		case strings.HasPrefix(line, "server -> client"):
			stream, now = readFile(t, name+".s2c.bin"), nil
		case strings.HasPrefix(line, "  @"):
			now = nil
			if m := frameLine.FindStringSubmatch(line); m != nil {
				at, size := number(t, m[1]), number(t, m[2])
				if got := int(binary.BigEndian.Uint32(stream[at:])); got != size {
					t.Fatalf("%s: frame at %d has length %d, text says %d", name, at, got, size)
				}
				frame = stream[at+4 : at+4+size]
			}
		default:
			if m := messageLine.FindStringSubmatch(line); m != nil {
				b := lastPart(t, frame)
				if len(b) != number(t, m[2]) {
					t.Fatalf("%s: %s has %d bytes, text says %s", name, m[1], len(b), m[2])
				}
				out = append(out, recorded{name: m[1], bytes: b})
				now = &out[len(out)-1]
			} else if now != nil {
				now.text += line + "\n"
			}
		}
	}
	return out
}

// lastPart is the last varint-delimited message of a frame, after the headers.
func lastPart(t testing.TB, frame []byte) (last []byte) {
	t.Helper()
	for len(frame) > 0 {
		part, n := protowire.ConsumeBytes(frame)
		if n < 0 {
			t.Fatalf("frame % x: %v", frame, protowire.ParseError(n))
		}
		last, frame = part, frame[n:]
	}
	return last
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "wire", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func number(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func newMessage(t testing.TB, name string) vt {
	t.Helper()
	mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("creel.yarn." + name))
	if err != nil {
		t.Fatal(err)
	}
	return mt.New().Interface().(vt)
}

// Hadoop's messages decode to the recorded meaning, and encode to the recorded bytes, with both codecs.
func TestRecordedMessages(t *testing.T) {
	messages := map[string]int{"tracker": 20, "client": 14, "am": 10, "nm-start": 2, "nm-status": 2, "nm-stop": 2}
	for name, want := range messages {
		t.Run(name, func(t *testing.T) {
			got := recordings(t, name)
			if len(got) != want {
				t.Fatalf("found %d messages, want %d", len(got), want)
			}
			for i, r := range got {
				meant := newMessage(t, r.name)
				if err := prototext.Unmarshal([]byte(r.text), meant); err != nil {
					t.Fatalf("%d %s: Hadoop's text: %v", i, r.name, err)
				}
				stock, fast := newMessage(t, r.name), newMessage(t, r.name)
				if err := proto.Unmarshal(r.bytes, stock); err != nil {
					t.Fatalf("%d %s: %v", i, r.name, err)
				}
				if err := fast.UnmarshalVT(r.bytes); err != nil {
					t.Fatalf("%d %s: vt: %v", i, r.name, err)
				}
				for codec, m := range map[string]vt{"stock": stock, "vt": fast} {
					if !proto.Equal(m, meant) {
						t.Errorf("%d %s: %s decoded\n%v\nHadoop meant\n%v", i, r.name, codec, m, meant)
					}
					if unknown := m.ProtoReflect().GetUnknown(); len(unknown) > 0 {
						t.Errorf("%d %s: %s: fields unknown to us: % x", i, r.name, codec, unknown)
					}
					again, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
					if err != nil || !bytes.Equal(again, r.bytes) {
						t.Errorf("%d %s: %s encoded by stock\n% x\nwant\n% x (%v)", i, r.name, codec, again, r.bytes, err)
					}
					again, err = m.MarshalVT()
					if err != nil || !bytes.Equal(again, r.bytes) {
						t.Errorf("%d %s: %s encoded by vt\n% x\nwant\n% x (%v)", i, r.name, codec, again, r.bytes, err)
					}
				}
			}
		})
	}
}

// A Hadoop federation's ZooKeeper records read without a field left over.
func TestRecordedFederationStore(t *testing.T) {
	var nodes map[string]struct{ Hex string }
	if err := json.Unmarshal(readFile(t, "zk-federationstore.json"), &nodes); err != nil {
		t.Fatal(err)
	}
	members, homes := map[string]*yarnpb.SubClusterInfoProto{}, map[string]string{}
	for path, node := range nodes {
		b, err := hex.DecodeString(node.Hex)
		if err != nil {
			t.Fatal(err)
		}
		dir, name := filepath.Split(strings.TrimPrefix(path, "/federationstore/"))
		var m vt
		switch {
		case dir == "memberships/":
			info := new(yarnpb.SubClusterInfoProto)
			members[name], m = info, info
		case dir == "applications/" && strings.HasPrefix(name, "application_"):
			m = new(yarnpb.ApplicationHomeSubClusterProto)
		default:
			continue
		}
		if err := m.UnmarshalVT(b); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if again, err := m.MarshalVT(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: encoded % x, want % x (%v)", path, again, b, err)
		}
		if len(m.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("%s: unknown fields % x", path, m.ProtoReflect().GetUnknown())
		}
		if app, ok := m.(*yarnpb.ApplicationHomeSubClusterProto); ok {
			if id := yarnpb.ToApplicationID(app.GetApplicationId()).String(); id != name {
				t.Errorf("record %s is of %s", name, id)
			}
			homes[name] = app.GetHomeSubCluster().GetId()
		}
	}
	if len(homes) != 16 || homes["application_1795253630888_0002"] != "SC-1" || homes["application_1795254296681_0002"] != "SC-2" {
		t.Errorf("homes %v", homes)
	}
	sc := members["SC-2"]
	if sc.GetState() != yarnpb.SubClusterStateProto_SC_RUNNING || sc.GetAMRMServiceAddress() != "127.0.0.2:21330" ||
		!json.Valid([]byte(sc.GetCapability())) || sc.GetRMWebServiceAddress() != "127.0.0.2:21388" {
		t.Errorf("SC-2 is %v", sc)
	}
}
