// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy/keys"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/memory"
)

// makeForeign has a member share no keys, as a Hadoop ResourceManager.
func (f *federation) makeForeign(id creel.SubclusterID) {
	f.t.Helper()
	f.rms[id].foreign, f.rms[id].cfg.Dir = true, f.t.TempDir()
	f.rms[id].stopRM()
	f.startRM(id)
	f.store = memory.New(memory.NewState("test", nil), time.Now)
	for _, other := range f.ids {
		if other != id {
			f.rms[other].stopRM()
			f.startRM(other)
		}
	}
	f.look()
}

// The proxy knows no key of such a home: the AM logs in at its home through the proxy,
// and still gets containers of the other member.
func TestAMLogsInAtHomeWithoutSharedKeys(t *testing.T) {
	f := found(t, byHeadroom, 1, 1)
	f.makeForeign("sc-a")
	at := f.proxy()
	m := f.submit("sc-a", nil)
	if _, _, err := f.store.Claim(t.Context(), m.app, "sc-a", nil); err != nil {
		t.Fatal(err)
	}
	m.connect(at.address)
	m.register()
	m.ask(1, 12)
	f.until("12 containers of both members run", func() bool {
		m.heartbeat()
		return len(m.has) == 12
	})
	epochs := map[int64]int{}
	for id := range m.has {
		epochs[id.Epoch()/1000]++
	}
	if len(epochs) != 2 {
		t.Errorf("containers by member: %v, want of two", epochs)
	}

	// Home is restarted: its connection dies, the AM's with it, and its client logs in again.
	f.rms["sc-a"].stopRM()
	f.startRM("sc-a")
	m.ask(1, 1)
	f.until("the AM has gone on", func() bool {
		m.heartbeat()
		return len(m.has) == 13
	})
	if m.again != 0 {
		t.Errorf("the AM had to register %d times more; its proxy does that", m.again)
	}
	if f.relay.Begun() == 0 {
		t.Error("no login was relayed, it is counted")
	}
	m.finish()
}

// A home that keeps its keys in a file which the proxy can read need not be up for an AM to
// log in, and nothing is relayed.
func TestAMLogsInByKeyFileOfHome(t *testing.T) {
	f := found(t, byHeadroom, 1, 1)
	f.makeForeign("sc-a")
	path := filepath.Join(t.TempDir(), "AMRMTokenSecretManagerNode")
	key := f.rms["sc-a"].d.AMRMKeys()[0]
	message := must((&pb.MasterKeyProto{KeyId: proto.Int32(key.ID), Bytes: key.Secret}).MarshalVT())
	state := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), message)
	if err := os.WriteFile(path, state, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.files, err = keys.OpenHadoopFiles([]keys.HadoopFile{{Member: "sc-a", Path: path}}); err != nil {
		t.Fatal(err)
	}
	at := f.proxy()
	m := f.submit("sc-a", at) // with no claim: the key identifies the home
	m.register()
	m.ask(1, 12)
	m.heartbeatUntil("12 containers of both members run", func() bool { return len(m.has) == 12 })
	if m.at("sc-a") == 0 || m.at("sc-b") == 0 {
		t.Errorf("containers are of %d and %d, want of both", m.at("sc-a"), m.at("sc-b"))
	}

	// Home and the proxy are away. The AM logs in at the next proxy, and receives the other member's containers.
	f.rms["sc-a"].stopRM()
	at.stop()
	at = f.proxy()
	m.connect(at.address)
	m.ask(2, 1)
	m.heartbeatUntil("a container of the other member", func() bool { return len(m.has) == 13 })
	f.startRM("sc-a")
	m.ask(3, 1)
	m.heartbeatUntil("one more with home back", func() bool { return len(m.has) == 14 })
	if n := f.relay.Begun(); n != 0 {
		t.Errorf("%d logins were relayed", n)
	}

	wrong := *m.cred
	wrong.Password = []byte("not the password")
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer client.Close()
	other := yarnrpc.NewApplicationMasterProtocolClient(client, at.address, hrpc.Login{Credential: &wrong})
	var refused *hrpc.RemoteError
	if _, err := other.Allocate(t.Context(), &pb.AllocateRequestProto{}); !errors.As(err, &refused) || !refused.Fatal {
		t.Errorf("with a wrong password: %v, want the proxy's refusal", err)
	}
	m.finish()
}

func TestLoginRefusedAtHomeIsRefusedAtProxy(t *testing.T) {
	f := found(t, byHeadroom, 1, 1)
	f.makeForeign("sc-a")
	at := f.proxy()
	m := f.submit("sc-a", nil)
	register := func(password []byte) error {
		client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
		defer client.Close()
		credential := *m.cred
		credential.Password = password
		am := yarnrpc.NewApplicationMasterProtocolClient(client, at.address, hrpc.Login{Credential: &credential})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{Host: proto.String("am")})
		return err
	}
	if err := register(m.cred.Password); !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("an application without a claim: %v, want an invalid token", err)
	}
	if _, _, err := f.store.Claim(t.Context(), m.app, "sc-a", nil); err != nil {
		t.Fatal(err)
	}
	var refused *hrpc.RemoteError
	if err := register([]byte("not the password")); !errors.As(err, &refused) || !refused.Fatal {
		t.Errorf("with a wrong password: %v, want home's refusal", err)
	}
	f.rms["sc-a"].stopRM()
	if err := register(m.cred.Password); !errors.Is(err, creel.ErrStandby) {
		t.Errorf("with home away: %v, want that it is tried again", err)
	}
	f.startRM("sc-a")
	if err := register(m.cred.Password); err != nil {
		t.Errorf("with home back: %v", err)
	}
}
